package door

// AppendNames appends names as a list of strings of structured fields (RFC 9651).
func AppendNames[T string | []byte](b []byte, names []T) []byte {
	for i, name := range names {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(AppendEscaped(append(b, '"'), name), '"')
	}
	return b
}

// AppendEscaped appends the inside of a string of structured fields, with a question mark for each byte that
// such a string cannot have.
func AppendEscaped[T string | []byte](b []byte, text T) []byte {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"', c == '\\':
			b = append(b, '\\', c)
		case c < ' ', c > '~':
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return b
}
