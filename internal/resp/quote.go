package resp

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns bytes as a word that people can read and type: unchanged if they are printable characters,
// else, or if they begin with a quote, in double quotes with \", \\ and \xHH. Unquote reverses it.
func Quote(b []byte) string {
	if isPlain(b) {
		return string(b)
	}
	return inQuotes(b)
}

// QuoteWord returns bytes as one word of a command line. It quotes spaces, quotes and backslashes, too.
func QuoteWord(b []byte) string {
	if isPlain(b) && !bytes.ContainsAny(b, ` "'\`) {
		return string(b)
	}
	return inQuotes(b)
}

func inQuotes(b []byte) string {
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
	return !bytes.ContainsFunc(b, func(r rune) bool { return !unicode.IsPrint(r) })
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

// maxPrintable bounds the client's input repeated in an error reply.
const maxPrintable = 64

// Printable escapes a client's input for errors and logs: one line of at most 64 bytes, with \r, \n, \t
// or \xHH for unprintable bytes.
func Printable(b []byte) string { return PrintableN(b, maxPrintable) }

// PrintableN is Printable with a maximum length.
func PrintableN(b []byte, maxBytes int) string {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, min(len(b), maxBytes))
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		var piece [4]byte
		text := append(piece[:0], b[:size]...)
		switch {
		case r == '\r':
			text = append(piece[:0], '\\', 'r')
		case r == '\n':
			text = append(piece[:0], '\\', 'n')
		case r == '\t':
			text = append(piece[:0], '\\', 't')
		case r == utf8.RuneError && size == 1 || !unicode.IsPrint(r):
			size = 1
			text = append(piece[:0], '\\', 'x', hex[b[0]>>4], hex[b[0]&15])
		}
		if len(out)+len(text) > maxBytes {
			break
		}
		out = append(out, text...)
		b = b[size:]
	}
	return string(out)
}

// maxErrorBytes bounds the shown part of a text that a server may have chosen.
const maxErrorBytes = 512

// ErrorLine is Printable for the error text of a server, with at most maxErrorBytes.
func ErrorLine(text string) string { return PrintableN([]byte(strings.TrimSpace(text)), maxErrorBytes) }

// OneLine returns err with the ErrorLine of its text.
func OneLine(err error) error { return Advised(err, "") }

// Advised is OneLine with what to do behind the text, without the text's final period.
func Advised(err error, advice string) error { return oneLine{err, advice} }

type oneLine struct {
	error
	advice string
}

func (e oneLine) Error() string {
	line := ErrorLine(e.error.Error())
	if e.advice == "" {
		return line
	}
	return strings.TrimSuffix(line, ".") + "; " + e.advice
}

func (e oneLine) Unwrap() error { return e.error }
