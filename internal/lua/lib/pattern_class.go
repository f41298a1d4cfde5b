package lib

import "cellserver/internal/lua/guard"

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
		in = guard.IsDigit(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = '!' <= c && c <= '~' && !isLetter(c) && !guard.IsDigit(c)
	case 's':
		in = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = isLetter(c) || guard.IsDigit(c)
	case 'x':
		in = guard.IsHexDigit(c)
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
