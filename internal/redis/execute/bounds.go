package execute

import (
	"bytes"

	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Bounds is what a script may do: something to the keys that it has declared, perhaps without changing them.
type Bounds struct {
	Keys     []store.Key
	ReadOnly bool
	names    map[string]struct{} // nil for a few
}

// fewDeclared are found faster one by one.
const fewDeclared = 16

// Index makes many keys quick to find.
func (b *Bounds) Index() {
	if len(b.Keys) <= fewDeclared {
		return
	}
	b.names = make(map[string]struct{}, len(b.Keys))
	for i := range b.Keys {
		b.names[string(b.Keys[i].Name)] = struct{}{}
	}
}

func (b *Bounds) has(db uint16, name []byte) bool {
	if b.names != nil {
		_, ok := b.names[string(name)]
		return ok && db == b.Keys[0].DB
	}
	for i := range b.Keys {
		if b.Keys[i].DB == db && bytes.Equal(b.Keys[i].Name, name) {
			return true
		}
	}
	return false
}

// admit refuses what the script must not do, whoever its client is.
func (b *Bounds) admit(c *catalog.Command, db uint16, args [][]byte) error {
	switch {
	case c.Flags&catalog.FlagWhole != 0:
		return reply.ErrWholeInScript
	case c.Flags&catalog.FlagWrite != 0 && b.ReadOnly:
		return reply.ErrReadOnlyScript
	}
	var err error
	c.Keys.Each(args, func(name []byte) {
		if !b.has(db, name) {
			err = reply.Undeclared(name)
		}
	})
	return err
}

// Bind has the Executor execute for a script, within its bounds.
func (x *Executor) Bind(b *Bounds) {
	x.bounds, x.byScript, x.HoldsKeys = b, true, true
	x.Forbidden = catalog.FlagNoScript | catalog.FlagNotWithKeys // a script may hold keys, too
}
