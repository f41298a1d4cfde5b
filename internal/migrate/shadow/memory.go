package shadow

import (
	"math"
	"strings"

	"cellserver/internal/migrate/monitor"
)

const (
	defaultMaxBytes = 256 << 20
	keyBytes        = 512     // of a key beside its name, estimated
	maxCallBytes    = 256     // of a call's text
	maxNameBytes    = 1 << 20 // a key this long still fits in a line
)

// noTAT stands for an absent key.
const noTAT = math.MinInt64

// key is the follower's knowledge of a key.
type key struct {
	db   uint16
	name string

	tats    spans // the possible TATs
	tracked bool  // the state was read, and only followed calls changed it since
	seenNs  int64 // TAT of the last read
	waiting bool  // queued for reading

	// Calls since the last read:
	calls   int
	last    string
	problem error   // of the last's arguments
	verdict verdict // of the last
	debits  bool    // the last requested units
	freshNs int64   // TAT after the last if the funnel was empty and the clocks agree; else noTAT
}

// forget is called when the key may have changed unobserved.
func (k *key) forget() { k.tats, k.tracked = anyTAT(), false }

// noteTAT records the key's TAT.
func (k *key) noteTAT(tatNs int64) {
	k.tats, k.tracked, k.seenNs, k.calls, k.last = spans{{tatNs, tatNs}}, true, tatNs, 0, ""
}

type place struct {
	db   uint16
	name string
}

func (k *key) bytes() int { return keyBytes + len(k.name) }

// called records a call's text, shortened.
func (k *key) called(args [][]byte) {
	if k.last = monitor.Text(args); len(k.last) > maxCallBytes {
		k.last = strings.Clone(k.last[:maxCallBytes]) + "..."
	}
}

// memory holds the called keys.
type memory struct {
	all                           map[place]*key
	maxBytes, bytes, waitingBytes int // waitingBytes counts queued keys
}

func newMemory(maxBytes int) *memory {
	if maxBytes == 0 {
		maxBytes = defaultMaxBytes
	}
	return &memory{all: map[place]*key{}, maxBytes: maxBytes}
}

// key returns a key, possibly new. It returns nil for a name that is too long, and for a new key while queued
// keys, which cannot be forgotten, take half of the memory.
func (m *memory) key(db uint16, name []byte, nowNs int64) *key {
	if k := m.all[place{db, string(name)}]; k != nil {
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
	m.all[place{db, k.name}] = k
	m.bytes += k.bytes()
	return k
}

// wait queues a key, and reports whether it was not queued before.
func (m *memory) wait(k *key) bool {
	if k.waiting {
		return false
	}
	k.waiting = true
	m.waitingBytes += k.bytes()
	return true
}

// read takes a key out of the queue.
func (m *memory) read(k *key) {
	k.waiting = false
	m.waitingBytes -= k.bytes()
}

// makeRoom forgets keys with empty funnels, then others, until a quarter is free.
func (m *memory) makeRoom(nowNs int64) {
	drop := func(matches func(*key) bool) {
		for at, k := range m.all {
			if m.bytes <= m.maxBytes-m.maxBytes/4 {
				return
			}
			if !k.waiting && matches(k) {
				delete(m.all, at)
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
		if k := m.all[place{db, string(arg)}]; k != nil {
			k.forget()
		}
	}
}

func (m *memory) forgetAll() {
	for _, k := range m.all {
		k.forget()
	}
}
