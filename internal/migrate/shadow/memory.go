package shadow

import (
	"math"
	"strings"

	"cellserver/internal/migrate/monitor"
)

const (
	defaultMaxBytes = 256 << 20
	keyBytes        = 512     // that a key takes beside its name, about
	maxCallBytes    = 256     // of a call's text
	maxNameBytes    = 1 << 20 // of a key, of which no line of MONITOR is too long
)

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
	k.tats, k.known, k.seenNs, k.calls, k.last = spans{{tatNs, tatNs}}, true, tatNs, 0, ""
}

type place struct {
	db   uint16
	name string
}

func (k *key) bytes() int { return keyBytes + len(k.name) }

// called notes a call's text, or as much of it as is worth showing.
func (k *key) called(args [][]byte) {
	if k.last = monitor.Text(args); len(k.last) > maxCallBytes {
		k.last = strings.Clone(k.last[:maxCallBytes]) + "..."
	}
}

// memory is the keys that were called.
type memory struct {
	keys                          map[place]*key
	maxBytes, bytes, waitingBytes int // waitingBytes are those of the keys that are to be read
}

func newMemory(maxBytes int) *memory {
	if maxBytes == 0 {
		maxBytes = defaultMaxBytes
	}
	return &memory{keys: map[place]*key{}, maxBytes: maxBytes}
}

// key returns a key, of which nothing may be known yet. It is nil for one whose name is too long, and for a new one while half of
// the memory is keys that are to be read, which cannot be forgotten.
func (m *memory) key(db uint16, name []byte, nowNs int64) *key {
	if k := m.keys[place{db, string(name)}]; k != nil {
		return k
	}
	k := &key{db: db, name: string(name)}
	if len(name) > maxNameBytes || m.waitingBytes+k.bytes() > m.maxBytes/2 {
		return nil
	}
	if m.bytes+k.bytes() > m.maxBytes {
		m.makeRoom(nowNs)
	}
	k.forget()
	m.keys[place{db, k.name}] = k
	m.bytes += k.bytes()
	return k
}

// wait notes that a key is to be read, and reports whether it was not before.
func (m *memory) wait(k *key) bool {
	if k.waiting {
		return false
	}
	k.waiting = true
	m.waitingBytes += k.bytes()
	return true
}

// read notes that a key was read.
func (m *memory) read(k *key) {
	k.waiting = false
	m.waitingBytes -= k.bytes()
}

// makeRoom forgets the keys whose funnels are empty, and if they are few, others, until a quarter is free. A key that comes
// again is learned again.
func (m *memory) makeRoom(nowNs int64) {
	drop := func(when func(*key) bool) {
		for at, k := range m.keys {
			if m.bytes <= m.maxBytes-m.maxBytes/4 {
				return
			}
			if !k.waiting && when(k) {
				delete(m.keys, at)
				m.bytes -= k.bytes()
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
