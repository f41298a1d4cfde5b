// Package glob matches bytes against Redis's patterns: * matches any bytes, ? one byte, [abc] and [a-z] one byte of a class,
// [^a] one byte not in it, and \x the byte x.
// A pattern is compiled once; matching then takes about linear time, and counts its steps against a budget.
//
// Edge cases are as in Redis 7.0: an unclosed class ends with the pattern, [] matches nothing and [^] every byte, the byte
// after a dash ends a range even if it is the bracket, and only the empty pattern and * match the empty string. In ranges
// bytes from 128 on are negative, as for Redis where C's char is signed: on x86, but not on ARM.
// A Pattern is safe for concurrent use, and the functions are pure.
package glob

import "math"

// Pattern is a compiled pattern: segments of elements that each match one byte, with stars between them.
type Pattern struct {
	first  segment   // at the beginning of what matches; all of it if there is no star
	middle []segment // between stars
	last   segment   // behind the last star
	star   bool
	empty  bool // matches the empty string

	Cost Cost
}

// Cost is what a pattern takes to match.
type Cost struct {
	leastBytes int // that all segments match together
	keySteps   int // for a string that is not too short, wherever its middle segments are
	byteSteps  int // for each byte in which a middle segment is searched
}

// searchSteps is what a search takes in addition to its bytes.
const searchSteps = 4

// Compile reads a pattern, which takes what CompileCost says. A byte of it takes up to 150 bytes of memory, and a middle
// segment with classes or question marks 2 KiB for each 64 elements.
func Compile(pattern []byte) *Pattern { return compile(pattern, false) }

// CompileFold is Compile for matching without regard to the case of ASCII letters, except for those escaped in a class.
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
		p.Cost.leastBytes += g.bytes()
		p.Cost.byteSteps = max(p.Cost.byteSteps, g.byteSteps())
	}
	p.Cost.leastBytes += p.first.bytes() + p.last.bytes()
	p.Cost.keySteps = p.first.compareSteps() + p.last.compareSteps() + searchSteps*len(p.middle)
	return p
}

// CompileCost returns how many steps it takes at most to compile a pattern. A step takes about a nanosecond.
func CompileCost(pattern []byte) (steps int) {
	// Measured, with the collector's part: a literal that grows, the beginning of a segment, the table of one, and what an
	// element that matches all bytes takes in it.
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

// Of returns how many steps it takes at most to match so many keys of so many bytes in total.
func (c Cost) Of(keys, keyBytes int) int {
	long := float64(keys) // those that are not too short
	if c.leastBytes > 0 {
		long = min(long, float64(keyBytes)/float64(c.leastBytes))
	}
	return int(min(math.Ceil(float64(c.byteSteps)*float64(keyBytes)+float64(c.keySteps)*long), math.MaxInt64/2))
}

// Budget is how many steps may be taken. The zero value is none.
type Budget struct {
	Left int
	// Refill is called when more has been spent, and returns how much may be spent from there on. If that is
	// negative, and without Refill, the match ends.
	Refill func() (steps int)
}

// Spend takes so many steps, and reports whether there is a budget for them.
func (b *Budget) Spend(steps int) bool {
	b.Left -= steps
	if b.Left < 0 && b.Refill != nil {
		b.Left = b.Refill()
	}
	return b.Left >= 0
}

// Matches reports whether s as a whole matches the pattern, whatever that takes. It does not allocate.
func (p *Pattern) Matches(s []byte) bool {
	matched, _ := p.Match(s, &Budget{Left: math.MaxInt})
	return matched
}

// Match is Matches within a budget. It is not ok if the budget did not suffice to find out.
func (p *Pattern) Match(s []byte, b *Budget) (matched, ok bool) {
	switch {
	case len(s) == 0:
		return p.empty, true
	case len(s) < p.Cost.leastBytes || !p.star && len(s) > p.Cost.leastBytes:
		return false, true
	case !b.Spend(p.Cost.keySteps):
		return false, false
	}
	end := len(s) - p.last.bytes()
	if !p.first.isAt(s) || !p.last.isAt(s[end:]) {
		return false, true
	}
	s = s[p.first.bytes():end]
	for i := range p.middle { // each as early as possible, which leaves most to the others
		after, ok := p.middle[i].search(s, b)
		if after < 0 || !ok {
			return false, ok
		}
		s = s[after:]
	}
	return true, true
}
