package queue

// minima finds the least of the values that were put at a place or behind it. What is put and found takes constant time, on average.
type minima struct {
	least []value // ascending, by place and by value: what is behind a lower one is the least of nothing
}

type value struct {
	place uint64
	ns    int64
}

// put adds a value at a place, which is not before the last one.
func (m *minima) put(place uint64, ns int64) {
	n := len(m.least)
	for n > 0 && !before(m.least[n-1].ns, ns) {
		n--
	}
	m.least = m.least[:n]
	if n == 0 || m.least[n-1].place != place {
		m.least = append(m.least, value{place, ns})
	}
}

// from returns the least value from a place on, which is not before that of the call before, and false if there is none.
func (m *minima) from(place uint64) (ns int64, ok bool) {
	for len(m.least) > 0 && m.least[0].place < place {
		m.least = m.least[1:]
	}
	if len(m.least) == 0 {
		return 0, false
	}
	return m.least[0].ns, true
}

// compact forgets what is the least for none of the waiters, who are in the order of their places.
func (m *minima) compact(waiters []*Waiter) {
	kept := m.least[:0]
	for _, v := range m.least {
		if len(waiters) > 0 && waiters[0].place <= v.place {
			kept = append(kept, v)
		}
		for len(waiters) > 0 && waiters[0].place <= v.place {
			waiters = waiters[1:]
		}
	}
	m.least = kept
}

// before compares times that are sums modulo 2^64.
func before(a, b int64) bool { return a-b < 0 }
