package glob

import "math/bits"

type segmentReader struct {
	left []byte
	fold bool
	any  *set // shared by question marks
}

// skipStar skips a star and reports whether there was one.
func (r *segmentReader) skipStar() bool {
	if len(r.left) == 0 {
		return false
	}
	r.left = r.left[1:] // only a star ends a segment
	return true
}

// next reads a segment up to the next star.
func (r *segmentReader) next() (g segment) {
	for len(r.left) > 0 && r.left[0] != '*' {
		e := r.element()
		switch {
		case g.elements != nil:
			g.elements = append(g.elements, e)
		case e.set == nil:
			g.literal = append(g.literal, e.char)
		default:
			for _, c := range g.literal {
				g.elements = append(g.elements, element{char: c})
			}
			g.literal, g.elements = nil, append(g.elements, e)
		}
	}
	return g
}

func (r *segmentReader) element() element {
	c := r.left[0]
	r.left = r.left[1:]
	switch c {
	case '?':
		if r.any == nil {
			r.any = &set{}
			r.any.addRange(0, 255)
		}
		return element{set: r.any}
	case '[':
		return r.class()
	case '\\':
		if len(r.left) > 0 {
			c, r.left = r.left[0], r.left[1:]
		}
	}
	if other := otherCase(c); r.fold && other != c {
		s := &set{}
		s.add(c)
		s.add(other)
		return element{set: s}
	}
	return element{char: c}
}

// class reads a class after its opening bracket.
func (r *segmentReader) class() element {
	negated := len(r.left) > 0 && r.left[0] == '^'
	if negated {
		r.left = r.left[1:]
	}
	var exact, folded set
	for len(r.left) > 0 && r.left[0] != ']' {
		taken := 1
		switch {
		case len(r.left) >= 2 && r.left[0] == '\\':
			exact.add(r.left[1])
			taken = 2
		case len(r.left) >= 3 && r.left[1] == '-':
			r.addRange(&folded, r.left[0], r.left[2])
			taken = 3
		default:
			r.addRange(&folded, r.left[0], r.left[0])
		}
		r.left = r.left[taken:]
	}
	if len(r.left) > 0 {
		r.left = r.left[1:]
	}
	for c := range 256 {
		lower := byte(c)
		if r.fold {
			lower = Lower(lower)
		}
		if folded.has(lower) {
			exact.add(byte(c))
		}
	}
	if negated {
		exact.invert()
	}
	if c, ok := exact.only(); ok {
		return element{char: c}
	}
	return element{set: &exact}
}

// addRange adds a range of C's signed bytes.
func (r *segmentReader) addRange(s *set, from, to byte) {
	if int8(from) > int8(to) {
		from, to = to, from
	}
	if r.fold {
		from, to = Lower(from), Lower(to)
	}
	switch {
	case int8(from) > int8(to):
	case from > to: // from -128...-1 to 0...127
		s.addRange(from, 255)
		s.addRange(0, to)
	default:
		s.addRange(from, to)
	}
}

func otherCase(c byte) byte {
	if lower := Lower(c); lower != c {
		return lower
	}
	if c >= 'a' && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

type set [256 / wordBits]uint64

func (s *set) has(c byte) bool { return s[c/wordBits]>>(c%wordBits)&1 != 0 }

func (s *set) add(c byte) { s[c/wordBits] |= 1 << (c % wordBits) }

func (s *set) addRange(from, to byte) {
	for word := from / wordBits; word <= to/wordBits; word++ {
		all := ^uint64(0)
		if word == from/wordBits {
			all <<= from % wordBits
		}
		if word == to/wordBits {
			all &= ^uint64(0) >> (wordBits - 1 - to%wordBits)
		}
		s[word] |= all
	}
}

func (s *set) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// only returns the member of a set of one.
func (s *set) only() (c byte, ok bool) {
	n := 0
	for i, word := range s {
		if word != 0 {
			c = byte(i*wordBits + bits.TrailingZeros64(word))
			n += bits.OnesCount64(word)
		}
	}
	return c, n == 1
}
