package glob

import "bytes"

// segment is the part between two stars: elements that match one byte each.
type segment struct {
	literal  []byte    // if each element is a byte
	elements []element // otherwise

	// A search keeps a bit for each element: whether all elements up to it match the latest bytes. The table
	// has a bit set of elements for each byte, in words of 64; elements beyond maxWords are compared where
	// the others match.
	table []uint64
	words int
}

// element matches one byte.
type element struct {
	set  *set // nil for char
	char byte
}

func (e *element) matches(c byte) bool {
	if e.set == nil {
		return e.char == c
	}
	return e.set.has(c)
}

const (
	wordBits        = 64
	maxWords        = 64 // bounds the table to 128 KiB
	literalsPerStep = 16 // bytes compared in one step
)

func (g *segment) bytes() int { return len(g.literal) + len(g.elements) }

func (g *segment) compareSteps() int { return len(g.literal)/literalsPerStep + len(g.elements) }

func (g *segment) byteSteps() int {
	if g.elements == nil {
		return 1
	}
	return g.words + len(g.beyond())
}

// isAt reports whether s, which is long enough, begins with the segment.
func (g *segment) isAt(s []byte) bool {
	return string(s[:len(g.literal)]) == string(g.literal) && areAt(g.elements, s)
}

func areAt(elements []element, s []byte) bool {
	for i := range elements {
		if !elements[i].matches(s[i]) {
			return false
		}
	}
	return true
}

// beyond returns the elements outside the table.
func (g *segment) beyond() []element { return g.elements[min(len(g.elements), maxWords*wordBits):] }

func (g *segment) prepareSearch() {
	if g.elements == nil {
		return
	}
	inTable := g.elements[:len(g.elements)-len(g.beyond())]
	g.words = (len(inTable) + wordBits - 1) / wordBits
	g.table = make([]uint64, 256*g.words)
	for i := range inTable {
		word, bit := i/wordBits, uint64(1)<<(i%wordBits)
		e := &inTable[i]
		if e.set == nil {
			g.table[int(e.char)*g.words+word] |= bit
			continue
		}
		for c := range 256 {
			if e.set.has(byte(c)) {
				g.table[c*g.words+word] |= bit
			}
		}
	}
}

// search returns the end of the first match in s, or -1. It is not ok if the budget is spent.
func (g *segment) search(s []byte, b *Budget) (after int, ok bool) {
	if g.elements == nil {
		return g.searchLiteral(s, b)
	}
	return g.searchElements(s, b)
}

const spendEvery = 1 << 10 // steps

func (g *segment) searchLiteral(s []byte, b *Budget) (after int, ok bool) {
	n := len(g.literal)
	turn := max(64*spendEvery, n) // each turn prepares the literal again
	for from := 0; ; from += turn {
		window := s[from:min(len(s), from+turn+n-1)]
		if at := bytes.Index(window, g.literal); at >= 0 {
			return from + at + n, b.Spend(at + 1)
		}
		if !b.Spend(max(0, len(window)-n+1)) {
			return -1, false
		}
		if from+len(window) == len(s) {
			return -1, true
		}
	}
}

func (g *segment) searchElements(s []byte, b *Budget) (after int, ok bool) {
	var words [maxWords]uint64
	matched := words[:g.words]
	beyond := g.beyond()
	lastBit := uint64(1) << ((len(g.elements) - len(beyond) - 1) % wordBits)
	unspent := 0
	for i, c := range s {
		row := g.table[int(c)*g.words:][:len(matched)]
		carry := uint64(1)
		for w := range matched {
			was := matched[w]
			matched[w] = (was<<1 | carry) & row[w]
			carry = was >> (wordBits - 1)
		}
		unspent += g.words
		if matched[len(matched)-1]&lastBit != 0 {
			unspent += len(beyond)
			if end := i + 1 + len(beyond); end <= len(s) && areAt(beyond, s[i+1:]) {
				return end, b.Spend(unspent)
			}
		}
		if unspent >= spendEvery {
			if !b.Spend(unspent) {
				return -1, false
			}
			unspent = 0
		}
	}
	return -1, b.Spend(unspent)
}
