// Package glob matches bytes against Redis's patterns: * matches any bytes, ? one byte, [abc] and [a-z] one
// byte of a class, [^a] one byte not in it, and \x the byte x. Matching takes about linear time and counts
// steps against a budget. A Pattern is safe for concurrent use.
//
// Edge cases are as in Redis 7.0: an unclosed class ends with the pattern, [] matches nothing and [^] every
// byte, the byte after a dash ends a range even if it is the bracket, and only the empty pattern and * match
// the empty string. In ranges bytes from 128 on are negative, as in C with a signed char: on x86, but not on
// ARM.
package glob

import (
	"math"
)

// Pattern is a compiled pattern: segments of elements that each match one byte, with stars between them.
type Pattern struct {
	first  segment   // at the beginning; all without a star
	middle []segment // between stars
	last   segment   // after the last star
	star   bool
	empty  bool // matches the empty string

	Cost Cost
}

// Cost is the cost of matching a pattern.
type Cost struct {
	minBytes  int // of a match
	keySteps  int // for a string of at least minBytes, without searches
	byteSteps int // for each byte searched for a middle segment
}

const searchSteps = 4 // of a search besides its bytes

// Compile compiles a pattern. It takes up to 150 bytes of memory for each byte, and 2 KiB for each 64
// elements of a middle segment with classes or question marks.
func Compile(pattern []byte) *Pattern { return compile(pattern, false) }

// CompileFold is Compile ignoring the case of ASCII letters, except for those escaped in a class.
func CompileFold(pattern []byte) *Pattern { return compile(pattern, true) }

func compile(pattern []byte, fold bool) *Pattern {
	p := &Pattern{empty: len(pattern) == 0 || string(pattern) == "*"}
	reader := segmentReader{left: pattern, fold: fold}
	p.first = reader.next()
	for reader.skipStar() {
		p.star = true
		if p.last.bytes() > 0 {
			p.middle = append(p.middle, p.last)
		}
		p.last = reader.next()
	}
	for i := range p.middle {
		g := &p.middle[i]
		g.prepareSearch()
		p.Cost.minBytes += g.bytes()
		p.Cost.byteSteps = max(p.Cost.byteSteps, g.byteSteps())
	}
	p.Cost.minBytes += p.first.bytes() + p.last.bytes()
	p.Cost.keySteps = p.first.compareSteps() + p.last.compareSteps() + searchSteps*len(p.middle)
	return p
}

// CompileCost returns the most steps, of about a nanosecond, to compile a pattern.
func CompileCost(pattern []byte) (steps int) {
	// Measured, with garbage collection: a byte of a literal, a segment, its table, and its elements of
	// several bytes.
	const literal, star, table, question, class = 32, 240, 2200, 500, 2000
	stars, tables := 0, 0
	for _, c := range pattern {
		switch c {
		case '*':
			stars++
		case '?':
			steps, tables = steps+question, tables+1
		case '[':
			steps, tables = steps+class, tables+1
		default:
			steps += literal
		}
	}
	return steps + star*stars + table*min(stars, tables)
}

// Of returns the most steps to match a number of keys with a total of keyBytes.
func (c Cost) Of(keys, keyBytes int) int {
	long := float64(keys) // of at least minBytes
	if c.minBytes > 0 {
		long = min(long, float64(keyBytes)/float64(c.minBytes))
	}
	return int(min(math.Ceil(float64(c.byteSteps)*float64(keyBytes)+float64(c.keySteps)*long), math.MaxInt64/2))
}

// Budget bounds the steps of matches. The zero value has none.
type Budget struct {
	Left int
	// Refill, if not nil, returns a new budget once this one is spent; if negative, the match ends.
	Refill func() (steps int)
}

// Spend takes steps, and reports whether the budget suffices.
func (b *Budget) Spend(steps int) bool {
	b.Left -= steps
	if b.Left < 0 && b.Refill != nil {
		b.Left = b.Refill()
	}
	return b.Left >= 0
}

// Matches reports whether all of s matches the pattern, without a budget. It does not allocate.
func (p *Pattern) Matches(s []byte) bool {
	matched, _ := p.Match(s, &Budget{Left: math.MaxInt})
	return matched
}

// Match is Matches within a budget. ok reports whether the budget sufficed.
func (p *Pattern) Match(s []byte, b *Budget) (matched, ok bool) {
	switch {
	case len(s) == 0:
		return p.empty, true
	case len(s) < p.Cost.minBytes || !p.star && len(s) > p.Cost.minBytes:
		return false, true
	case !b.Spend(p.Cost.keySteps):
		return false, false
	}
	end := len(s) - p.last.bytes()
	if !p.first.isAt(s) || !p.last.isAt(s[end:]) {
		return false, true
	}
	s = s[p.first.bytes():end]
	for i := range p.middle { // the earliest match leaves most to the others
		after, ok := p.middle[i].search(s, b)
		if after < 0 || !ok {
			return false, ok
		}
		s = s[after:]
	}
	return true, true
}

// Fold returns a name in lower case, ASCII only, as Redis does; strings.ToLower changes other letters, too.
func Fold(name []byte) string {
	folded := make([]byte, len(name))
	for i, c := range name {
		folded[i] = Lower(c)
	}
	return string(folded)
}

// IsFolded reports whether Fold(name) == folded, without allocation.
func IsFolded(name []byte, folded string) bool {
	if len(name) != len(folded) {
		return false
	}
	for i, c := range name {
		if Lower(c) != folded[i] {
			return false
		}
	}
	return true
}

// Lower returns an ASCII letter in lower case.
func Lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
