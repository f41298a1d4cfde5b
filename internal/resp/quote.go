package resp

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Quote returns bytes as a word that people can read and type: unchanged if they are printable characters,
// else, or if they begin with a quote, in double quotes with \", \\ and \xHH. Unquote reverses it.
func Quote(b []byte) string {
	if isPlain(b) {
		return string(b)
	}
	const hex = "0123456789abcdef"
	out := append(make([]byte, 0, len(b)+2), '"')
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', b[0])
		case r == utf8.RuneError && size == 1 || !unicode.IsPrint(r):
			for _, c := range b[:size] {
				out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
			}
		default:
			out = append(out, b[:size]...)
		}
		b = b[size:]
	}
	return string(append(out, '"'))
}

// isPlain returns false for an empty word, and for a word with a leading or trailing space, which would be
// invisible.
func isPlain(b []byte) bool {
	if len(b) == 0 || b[0] == '"' || b[0] == ' ' || b[len(b)-1] == ' ' || !utf8.Valid(b) {
		return false
	}
	return !slices.ContainsFunc([]rune(string(b)), func(r rune) bool { return !unicode.IsPrint(r) })
}

// Unquote reverses Quote: text that begins with a double quote is parsed like a word of an inline command,
// anything else is unchanged. It returns false if the quote is not closed, or followed by more text.
func Unquote(word string) ([]byte, bool) {
	line := []byte(word)
	if len(line) == 0 || line[0] != '"' {
		return line, true
	}
	r, w, ok := unquote(line, 1, 0, '"')
	return line[:w:w], ok && r == len(line)
}
