package keys

import (
	"math"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

const errNoKey reply.Error = "ERR no such key"

// mSet is MSET key value [key value ...].
func (k handlers) mSet(c execute.Call, args [][]byte) error {
	if _, err := k.setPairs(c, args[1:], setOptions{}, limiter.NeverNs); err != nil {
		return err
	}
	return c.OK()
}

// mSetNX is MSETNX key value [key value ...].
func (k handlers) mSetNX(c execute.Call, args [][]byte) error {
	return k.replySet(c, args[1:], setOptions{when: store.IfAbsent}, limiter.NeverNs)
}

// mSetEx is MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT seconds |
// PXAT milliseconds | KEEPTTL].
func (k handlers) mSetEx(c execute.Call, args [][]byte) error {
	n, ok := resp.ParseInt(args[1])
	switch {
	case !ok || n <= 0 || n > math.MaxInt32:
		return reply.Error("ERR invalid numkeys value")
	case n > int64(len(args)-2)/2:
		return reply.Error("ERR wrong number of key-value pairs")
	}
	pairs := args[2 : 2+2*n]
	o, err := readSetOptions(args[2+2*n:])
	if err != nil || o.get || o.comparison != nil || o.expiry == "persist" {
		return reply.ErrSyntax
	}
	atNs, err := o.endNs(args[0], c.Now())
	if err != nil {
		return err
	}
	return k.replySet(c, pairs, o, atNs)
}

func (k handlers) replySet(c execute.Call, pairs [][]byte, o setOptions, atNs int64) error {
	done, err := k.setPairs(c, pairs, o, atNs)
	if err == nil {
		c.Reply().Int(execute.LimitedInt(done))
	}
	return err
}

// setPairs sets all keys in one step, or none unless the condition holds for each.
func (k handlers) setPairs(c execute.Call, pairs [][]byte, o setOptions, atNs int64) (done bool, err error) {
	if len(pairs)%2 != 0 {
		return false, reply.ErrArity
	}
	var settings []*store.Setting
	var keys []store.Key
	for ; len(pairs) > 0; pairs = pairs[2:] {
		s, err := k.setting(c, pairs[1])
		if err != nil {
			return false, err
		}
		if s.To.Kind == limiter.Value { // a funnel expires by its TAT
			s.To.ExpiresNs, s.KeepExpiry = atNs, o.expiry == "keepttl"
		}
		settings, keys = append(settings, s), append(keys, c.Key(pairs[0]))
	}
	err = c.OnKeys(keys, func() error {
		if done, err = allHold(c, keys, o.when); err != nil || !done {
			return err
		}
		for i, s := range settings {
			if err := c.Set(keys[i].Name, s); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// allHold reports whether a condition holds for each of some keys.
func allHold(c execute.Call, keys []store.Key, when store.Condition) (bool, error) {
	if when == store.Always {
		return true, nil
	}
	for _, key := range keys {
		if _, found, err := c.Entry(key.Name); err != nil || !when.Holds(found) {
			return false, err
		}
	}
	return true, nil
}

func (k handlers) mGet(c execute.Call, args [][]byte) error {
	var states []limiter.State
	held := 0
	if err := c.OnKeys(keysOf(c, args[1:]), func() error {
		states, held = make([]limiter.State, len(args)-1), 0
		first, size := map[string]int{}, 0 // a key that is there twice is read once
		for i, name := range args[1:] {
			if at, ok := first[string(name)]; ok {
				states[i] = states[at]
			} else if s, ok, err := c.State(name); err != nil {
				return err
			} else if first[string(name)] = i; ok {
				states[i], held = s, held+len(s.Payload)
			}
			if size += len(states[i].Payload); size > k.MaxReplyBytes {
				return reply.TooLongReplies(k.MaxReplyBytes)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	c.Reply().Array(len(states))
	c.InTurns(func(c execute.Call) int {
		s := &states[0]
		if execute.ReplyString(c.Reply(), s, s.ExpiresNs != 0, c.Now()) != nil { // another type, as in Redis
			c.Reply().Null()
		}
		if states = states[1:]; len(states) == 0 {
			return 0
		}
		return held + len(states)
	})
	return nil
}

func rename(c execute.Call, args [][]byte) error {
	if _, err := move(c, args[1], args[2], store.Always); err != nil {
		return err
	}
	return c.OK()
}

func renameNX(c execute.Call, args [][]byte) error {
	moved, err := move(c, args[1], args[2], store.IfAbsent)
	if err == nil {
		c.Reply().Int(execute.LimitedInt(moved))
	}
	return err
}

// move gives a key's state to another one.
func move(c execute.Call, from, to []byte, when store.Condition) (moved bool, err error) {
	err = c.OnKeys([]store.Key{c.Key(from), c.Key(to)}, func() error {
		s, ok, err := c.State(from)
		switch {
		case err != nil:
			return err
		case !ok:
			return errNoKey
		}
		if s.Kind != limiter.Value { // the user may have no right to move it
			if err := c.Set(from, &store.Setting{To: s}); err != nil {
				return err
			}
		}
		if string(from) == string(to) { // changes nothing, as in Redis
			moved = when.Holds(true)
			return nil
		}
		put := store.Setting{To: s, When: when}
		if err := c.Set(to, &put); err != nil {
			return err
		}
		if moved = put.Held; !moved {
			return nil
		}
		return c.Set(from, &store.Setting{When: store.IfFound})
	})
	return moved, err
}
