package session

import (
	"bytes"

	"cellserver/internal/store"
)

// declared is the keys that a script may use.
type declared struct {
	keys  []store.Key
	names map[string]struct{} // nil for a few
}

// fewDeclared are found faster one by one.
const fewDeclared = 16

func keysOf(db uint16, names [][]byte) []store.Key {
	keys := make([]store.Key, len(names))
	for i, name := range names {
		keys[i] = store.Key{DB: db, Name: name}
	}
	return keys
}

// index makes many keys quick to find.
func (d *declared) index() {
	if len(d.keys) <= fewDeclared {
		return
	}
	d.names = make(map[string]struct{}, len(d.keys))
	for i := range d.keys {
		d.names[string(d.keys[i].Name)] = struct{}{}
	}
}

func (d *declared) has(db uint16, name []byte) bool {
	if d.names != nil {
		_, ok := d.names[string(name)]
		return ok && db == d.keys[0].DB
	}
	for i := range d.keys {
		if d.keys[i].DB == db && bytes.Equal(d.keys[i].Name, name) {
			return true
		}
	}
	return false
}
