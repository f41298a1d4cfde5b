package queue

// minima finds the least value at or after a place, in amortized constant time.
type minima struct {
	values []value // ascending by place and value: a value before a lower one is never the least
}

type value struct {
	place uint64
	ns    int64
}

// put adds a value at a place not before the last one.
func (m *minima) put(place uint64, ns int64) {
	n := len(m.values)
	for n > 0 && !before(m.values[n-1].ns, ns) {
		n--
	}
	m.values = m.values[:n]
	if n == 0 || m.values[n-1].place != place {
		m.values = append(m.values, value{place, ns})
	}
}

// from returns the least value at or after a place, not before the last call's, and false if there is none.
func (m *minima) from(place uint64) (ns int64, ok bool) {
	for len(m.values) > 0 && m.values[0].place < place {
		m.values = m.values[1:]
	}
	if len(m.values) == 0 {
		return 0, false
	}
	return m.values[0].ns, true
}

// compact drops values that are the least for none of the waiters, given in order of places.
func (m *minima) compact(waiters []*Waiter) {
	kept := m.values[:0]
	for _, v := range m.values {
		if len(waiters) > 0 && waiters[0].place <= v.place {
			kept = append(kept, v)
		}
		for len(waiters) > 0 && waiters[0].place <= v.place {
			waiters = waiters[1:]
		}
	}
	m.values = kept
}

// before compares times modulo 2^64.
func before(a, b int64) bool { return a-b < 0 }
