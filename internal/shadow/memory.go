package shadow

import "math"

const defaultMaxKeys = 1_000_000

// noTAT is that of a key that is not there.
const noTAT = math.MinInt64

// key is what is known of one.
type key struct {
	db   uint16
	name string

	tats    spans // as they may be, by what was seen
	known   bool  // the state was read, and nobody has written it but by calls that were followed
	seenNs  int64 // the TAT when it was read last
	waiting bool  // it is to be read

	// Of the calls since it was read last:
	calls   int
	last    string
	problem error   // of the last's arguments
	verdict verdict // of the last
	debits  bool    // the last requested units
	freshNs int64   // the TAT that the last has brought about if the funnel was empty and the clocks are alike; noTAT if not
}

// forget says that somebody else may have written the key.
func (k *key) forget() { k.tats, k.known = anyTAT(), false }

// saw says what the key's TAT is.
func (k *key) saw(tatNs int64) {
	k.tats, k.known, k.seenNs, k.calls = spans{{tatNs, tatNs}}, true, tatNs, 0
}

type place struct {
	db   uint16
	name string
}

// memory is the keys that were called.
type memory struct {
	keys    map[place]*key
	maxKeys int
}

func newMemory(maxKeys int) *memory {
	if maxKeys == 0 {
		maxKeys = defaultMaxKeys
	}
	return &memory{keys: map[place]*key{}, maxKeys: maxKeys}
}

// key returns a key, of which nothing may be known yet.
func (m *memory) key(db uint16, name []byte, nowNs int64) *key {
	if k := m.keys[place{db, string(name)}]; k != nil {
		return k
	}
	if len(m.keys) >= m.maxKeys {
		m.makeRoom(nowNs)
	}
	k := &key{db: db, name: string(name)}
	k.forget()
	m.keys[place{db, k.name}] = k
	return k
}

// makeRoom forgets the keys whose funnels are empty, and if they are few, others, until a quarter is free. A key that comes
// again is learned again.
func (m *memory) makeRoom(nowNs int64) {
	drop := func(when func(*key) bool) {
		for at, k := range m.keys {
			if len(m.keys) <= m.maxKeys-m.maxKeys/4 {
				return
			}
			if !k.waiting && when(k) {
				delete(m.keys, at)
			}
		}
	}
	drop(func(k *key) bool { return k.tats[len(k.tats)-1].hi <= nowNs })
	drop(func(*key) bool { return true })
}

// touch forgets the keys that a call names.
func (m *memory) touch(db uint16, args [][]byte) {
	for _, arg := range args[1:] {
		if k := m.keys[place{db, string(arg)}]; k != nil {
			k.forget()
		}
	}
}

func (m *memory) forgetAll() {
	for _, k := range m.keys {
		k.forget()
	}
}
