package lua

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// Bounds of Lua's patterns: captures, and nested items.
const (
	maxCaptures     = 32
	maxPatternDepth = 200
)

// Lengths of unfinished and of position captures.
const (
	captureOpen     = -1
	capturePosition = -2
)

type capture struct{ start, length int }

// matcher matches a string with a Lua 5.1 pattern by backtracking. It spends every step, as a pattern may
// need exponentially many.
type matcher struct {
	meter    *vm.Meter
	fail     func(problem string) // at an error in the pattern; must not return
	src, pat string               // without its anchor
	captures [maxCaptures]capture
	level    int // begun captures, after a match all of them
	depth    int
	from, to int // of the whole match
}

// matchAt matches at a position and returns the match's end, or -1.
func (m *matcher) matchAt(from int) (end int) {
	m.level = 0
	m.from, m.to = from, m.match(from, 0)
	return m.to
}

// search returns the end of the first match from a position on, or -1.
func (m *matcher) search(from int) (end int) {
	for ; from <= len(m.src); from++ {
		if end = m.matchAt(from); end >= 0 {
			return end
		}
	}
	return -1
}

func (m *matcher) whole() string { return m.src[m.from:m.to] }

// capture returns the i-th capture of the last match, from 0: a text or a position. The whole match replaces
// a missing first capture.
func (m *matcher) capture(i int) lua.LValue {
	if i >= m.level {
		if i > 0 {
			m.fail("invalid capture index")
		}
		return lua.LString(m.whole())
	}
	c := m.captures[i]
	switch c.length {
	case captureOpen:
		m.fail("unfinished capture")
	case capturePosition:
		return lua.LNumber(c.start + 1)
	}
	return lua.LString(m.src[c.start : c.start+c.length])
}

// match matches the pattern from p at position s, and returns the match's end, or -1.
func (m *matcher) match(s, p int) int {
	m.depth++
	if m.depth > maxPatternDepth {
		m.fail("pattern too complex")
	}
	end := m.matchItems(s, p)
	m.depth--
	return end
}

func (m *matcher) matchItems(s, p int) int {
	for p < len(m.pat) {
		m.meter.Spend(1)
		switch c := m.pat[p]; {
		case c == '(':
			return m.open(s, p+1)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pat) && s == len(m.src):
			return s
		case c == '$' && p+1 == len(m.pat):
			return -1
		case c == '%' && (m.at(p+1) == 'b' || m.at(p+1) == 'f' || vm.IsDigit(m.at(p+1))):
			s, p = m.special(s, p)
			if s < 0 {
				return -1
			}
			continue
		}
		end := m.itemEnd(p)
		switch m.at(end) {
		case '?':
			if m.one(s, p, end) {
				if r := m.match(s+1, end+1); r >= 0 {
					return r
				}
			}
			p = end + 1
		case '*':
			return m.longest(s, p, end)
		case '+':
			if !m.one(s, p, end) {
				return -1
			}
			return m.longest(s+1, p, end)
		case '-':
			return m.shortest(s, p, end)
		default:
			if !m.one(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
	return s
}

// at returns a byte of the pattern, or 0 after its end.
func (m *matcher) at(p int) byte {
	if p < len(m.pat) {
		return m.pat[p]
	}
	return 0
}

// open begins a capture, or takes a position.
func (m *matcher) open(s, p int) int {
	kind := captureOpen
	if m.at(p) == ')' {
		kind = capturePosition
		p++
	}
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, kind}
	m.level++
	end := m.match(s, p)
	if end < 0 {
		m.level--
	}
	return end
}

func (m *matcher) close(s, p int) int {
	i := m.level - 1
	for i >= 0 && m.captures[i].length != captureOpen {
		i--
	}
	if i < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].start
	end := m.match(s, p)
	if end < 0 {
		m.captures[i].length = captureOpen
	}
	return end
}

// special matches %b, %f and back references, and returns the positions after them, or -1.
func (m *matcher) special(s, p int) (int, int) {
	switch c := m.pat[p+1]; c {
	case 'b':
		return m.balanced(s, p+2), p + 4
	case 'f':
		if m.at(p+2) != '[' {
			m.fail("missing '[' after '%f' in pattern")
		}
		end := m.itemEnd(p + 2)
		before := byte(0)
		if s > 0 {
			before = m.src[s-1]
		}
		here := byte(0)
		if s < len(m.src) {
			here = m.src[s]
		}
		if m.inSet(before, p+2, end) || !m.inSet(here, p+2, end) {
			return -1, 0
		}
		return s, end
	default:
		i := int(c) - '1'
		if i < 0 || i >= m.level || m.captures[i].length == captureOpen {
			m.fail("invalid capture index")
		}
		k := m.captures[i]
		text := m.src[k.start : k.start+max(k.length, 0)]
		m.meter.Spend(len(text) >> 6)
		if !strings.HasPrefix(m.src[s:], text) {
			return -1, 0
		}
		return s + len(text), p + 2
	}
}

func (m *matcher) balanced(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.src); i++ {
		m.meter.Spend(1)
		switch m.src[i] {
		case m.pat[p+1]:
			depth--
			if depth == 0 {
				return i + 1
			}
		case m.pat[p]:
			depth++
		}
	}
	return -1
}

func (m *matcher) longest(s, p, end int) int {
	n := 0
	for m.one(s+n, p, end) {
		n++
	}
	for ; n >= 0; n-- {
		m.meter.Spend(1)
		if r := m.match(s+n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) shortest(s, p, end int) int {
	for {
		m.meter.Spend(1)
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		if !m.one(s, p, end) {
			return -1
		}
		s++
	}
}

// itemEnd returns the end of the single-character item at p.
func (m *matcher) itemEnd(p int) int {
	c := m.pat[p]
	p++
	if c == '%' {
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	}
	if c != '[' {
		return p
	}
	if m.at(p) == '^' {
		p++
	}
	for first := true; first || m.at(p) != ']' || p >= len(m.pat); first = false {
		if p >= len(m.pat) {
			m.fail("malformed pattern (missing ']')")
		}
		m.meter.Spend(1)
		p++
		if m.pat[p-1] == '%' {
			p++
		}
	}
	return p + 1
}

// one reports whether the character at s matches the item.
func (m *matcher) one(s, p, end int) bool {
	m.meter.Spend(1)
	if s >= len(m.src) {
		return false
	}
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, end)
	}
	return c == m.pat[p]
}

// inSet reports whether c is in the set from its bracket at p to end.
func (m *matcher) inSet(c byte, p, end int) bool {
	m.meter.Spend((end - p) >> 3)
	last := end - 1 // the closing bracket
	p++
	found := true
	if m.at(p) == '^' {
		found = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if inClass(c, m.at(p)) {
				return found
			}
		case p+2 < last && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return found
			}
			p += 2
		case m.pat[p] == c:
			return found
		}
	}
	return !found
}

// inClass matches %a and its like; upper-case letters negate, other characters match themselves.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isLetter(c)
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = vm.IsDigit(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = '!' <= c && c <= '~' && !isLetter(c) && !vm.IsDigit(c)
	case 's':
		in = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = isLetter(c) || vm.IsDigit(c)
	case 'x':
		in = vm.IsHexDigit(c)
	case 'z':
		in = c == 0
	default:
		return c == class
	}
	if !isLetter(class) {
		return c == class
	}
	return in == (class >= 'a')
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
