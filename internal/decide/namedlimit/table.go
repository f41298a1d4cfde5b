package namedlimit

import (
	"cmp"
	"math/bits"
	"slices"
)

// table has the limits in force by name. It is immutable. Each call finds its limit in slots: through a map
// CL.CHECK takes a twentieth longer from bytes in to bytes out.
type table struct {
	slots []*Limit // by the hash of the name, or behind; a power of two of them, at most half of them used

	byFile map[string]Definition // of the last reading of the file
	reload uint32                // its number
}

func newTable(all []*Limit) *table {
	t := &table{slots: make([]*Limit, 2<<bits.Len(uint(len(all))))}
	for _, l := range all {
		t.slots[t.slotOf([]byte(l.Name))] = l
	}
	return t
}

// with returns a table with a limit in place of the one of its name.
func (t *table) with(l *Limit) *table {
	next := *t
	next.slots = slices.Clone(t.slots)
	next.slots[t.slotOf([]byte(l.Name))] = l
	return &next
}

// slotOf returns the slot of a name, or the free one for it.
func (t *table) slotOf(name []byte) int {
	for i := int(hashOf(name) & uint64(len(t.slots)-1)); ; i = (i + 1) & (len(t.slots) - 1) {
		if l := t.slots[i]; l == nil || l.Name == string(name) {
			return i
		}
	}
}

func (t *table) find(name []byte) *Limit { return t.slots[t.slotOf(name)] }

// all returns the limits in any order.
func (t *table) all() []*Limit {
	return slices.DeleteFunc(slices.Clone(t.slots), func(l *Limit) bool { return l == nil })
}

// Limits are the limits in force at one moment, with their overrides: what a call decides by, so that it is
// of one file. The zero Limits have not been taken.
type Limits struct {
	Moment
	table *table
}

// Moment is a time in Unix nanoseconds that is read once, when it is first needed.
type Moment struct {
	now  func() int64 // nil if it is known
	atNs int64        // 0 before
}

// At returns a known Moment.
func At(nowNs int64) *Moment { return &Moment{atNs: nowNs} }

func (m *Moment) ns() int64 {
	if m.atNs == 0 && m.now != nil {
		m.atNs = m.now()
	}
	return m.atNs
}

// Limits returns those in force now.
func (r *Registry) Limits() Limits { return Limits{Moment{now: r.config.Now}, r.current.Load()} }

// Taken reports whether the Limits are those of a moment.
func (l *Limits) Taken() bool { return l.table != nil }

func (l *Limits) Lookup(name []byte) *Limit { return l.table.find(name) }

// All returns all limits by name.
func (l *Limits) All() []*Limit {
	return slices.SortedFunc(slices.Values(l.table.all()), func(a, b *Limit) int { return cmp.Compare(a.Name, b.Name) })
}
