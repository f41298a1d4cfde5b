package execute

import (
	"bytes"

	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// Bounds limit a script to its declared keys, and to reading where it must not write.
type Bounds struct {
	Keys     []store.Key
	ReadOnly bool
	names    map[string]struct{} // nil for few keys
}

// fewDeclared keys are found faster by a linear search.
const fewDeclared = 16

// Index speeds up the search among many keys.
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

// admit refuses what a script must not do, whatever its client may.
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

// Bind puts the Executor into a script's bounds.
func (x *Executor) Bind(b *Bounds) {
	x.bounds, x.byScript, x.HoldsKeys = b, true, true
	x.Forbidden = catalog.FlagNoScript | catalog.FlagNotWithKeys // a script may hold keys, too
}
