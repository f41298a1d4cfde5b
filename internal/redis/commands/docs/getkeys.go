package docs

import (
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/catalog"
)

func (k handlers) commandGetKeys(c execute.Call, args [][]byte) error {
	_, keys, err := k.keysOf(args[2:])
	if err != nil {
		return err
	}
	c.Reply().Array(len(keys))
	for _, key := range keys {
		c.Reply().Bulk(key)
	}
	return nil
}

func (k handlers) commandGetKeysAndFlags(c execute.Call, args [][]byte) error {
	r, keys, err := k.keysOf(args[2:])
	if err != nil {
		return err
	}
	flags := r.Keys.FlagsOf(args[2:])
	c.Reply().Array(len(keys))
	for i, key := range keys {
		if i == 1 && r.Keys.SecondFlags != nil {
			flags = r.Keys.SecondFlags
		}
		c.Reply().Array(2)
		c.Reply().Bulk(key)
		c.Reply().StatusSet(flags)
	}
	return nil
}

// keysOf returns the keys of a call. By its callers' arity args has at least two elements.
func (k handlers) keysOf(args [][]byte) (*catalog.Command, [][]byte, error) {
	r := k.Called(args)
	switch {
	case r == nil || r.Refusal != "":
		return nil, nil, reply.Error("ERR Invalid command specified")
	case r.Keys.None():
		return nil, nil, reply.Error("ERR The command has no key arguments")
	case !r.AcceptsArity(len(args)) || len(args) > r.Most():
		return nil, nil, reply.Error("ERR Invalid number of arguments specified for command")
	}
	var keys [][]byte
	r.Keys.Each(args, func(key []byte) { keys = append(keys, key) })
	return r, keys, nil
}
