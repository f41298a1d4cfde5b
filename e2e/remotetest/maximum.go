package remotetest

// maximum is a segment tree of numbers, for raising a prefix and finding the greatest.
type maximum struct {
	size  int
	best  []int64 // greatest below a node, with additions below it
	added []int64 // to all below a node
}

func newMaximum(values []int64) *maximum {
	size := 1
	for size < len(values) {
		size *= 2
	}
	m := &maximum{size: size, best: make([]int64, 2*size), added: make([]int64, 2*size)}
	const least = -1 << 62
	for i := range size {
		m.best[size+i] = least
		if i < len(values) {
			m.best[size+i] = values[i]
		}
	}
	for i := size - 1; i > 0; i-- {
		m.best[i] = max(m.best[2*i], m.best[2*i+1])
	}
	return m
}

// add raises the first n numbers.
func (m *maximum) add(n int, by int64) { m.addBelow(1, m.size, n, by) }

// addAt raises one number.
func (m *maximum) addAt(at int, by int64) {
	m.add(at+1, by)
	m.add(at, -by)
}

func (m *maximum) addBelow(node, width, n int, by int64) {
	switch {
	case n <= 0:
		return
	case n >= width:
		m.best[node] += by
		m.added[node] += by
		return
	}
	m.addBelow(2*node, width/2, n, by)
	m.addBelow(2*node+1, width/2, n-width/2, by)
	m.best[node] = max(m.best[2*node], m.best[2*node+1]) + m.added[node]
}

// max returns the greatest number and its index.
func (m *maximum) max() (at int, value int64) {
	node := 1
	for node < m.size {
		node *= 2
		if m.best[node+1] > m.best[node] {
			node++
		}
	}
	return node - m.size, m.best[1]
}
