package glob_test

import "cellserver/internal/wire/glob"

// referenceMatch is the plain matcher that Pattern is compared with: obvious, and quadratic.
func referenceMatch(pattern, s []byte, fold bool) bool { return match(pattern, s, fold) }

// match needs no stack: on a mismatch, the last star takes one more byte. An earlier star never has to, because the pattern
// between it and the last one has already matched as early as possible.
func match(pattern, s []byte, fold bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0 || string(pattern) == "*"
	}
	p, i := 0, 0
	afterStar, taken := -1, 0 // where pattern and s continue after the last star
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			afterStar, taken = p, i
			if p == len(pattern) {
				return true
			}
			continue
		}
		next, ok := matchByte(pattern, p, s[i], fold)
		switch {
		case ok:
			p = next
			i++
		case afterStar < 0:
			return false
		default:
			taken++
			p, i = afterStar, taken
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchByte reports whether c matches the pattern at p, which is not a star, and where the pattern continues.
func matchByte(pattern []byte, p int, c byte, fold bool) (next int, ok bool) {
	if p == len(pattern) {
		return p, false
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchClass(pattern, p+1, c, fold)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, same(pattern[p], c, fold)
}

// matchClass is matchByte for a class; p is after its opening bracket.
func matchClass(pattern []byte, p int, c byte, fold bool) (next int, ok bool) {
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	found := false
	for p < len(pattern) && pattern[p] != ']' {
		switch left := len(pattern) - p; {
		case left >= 2 && pattern[p] == '\\':
			p++
			found = found || pattern[p] == c
		case left >= 3 && pattern[p+1] == '-':
			found = found || inRange(pattern[p], pattern[p+2], c, fold)
			p += 2
		default:
			found = found || same(pattern[p], c, fold)
		}
		p++
	}
	return min(p+1, len(pattern)), found != negated
}

func inRange(from, to, c byte, fold bool) bool {
	if int8(from) > int8(to) {
		from, to = to, from
	}
	if fold {
		from, to, c = glob.Lower(from), glob.Lower(to), glob.Lower(c)
	}
	return int8(from) <= int8(c) && int8(c) <= int8(to)
}

func same(a, b byte, fold bool) bool {
	return a == b || fold && glob.Lower(a) == glob.Lower(b)
}
