package glob

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
