package resp

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPrintable bounds the client's input repeated in an error reply.
const maxPrintable = 64

// Printable returns a client's input as one line of text for an error or a log: printable characters
// unchanged, all others as \r, \n, \t or \xHH, cut at 64 bytes.
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

// ErrorLine returns a server's error text as one line, as Printable does, up to maxErrorBytes.
func ErrorLine(text string) string { return PrintableN([]byte(strings.TrimSpace(text)), maxErrorBytes) }

// OneLine returns err with the ErrorLine of its text.
func OneLine(err error) error { return oneLine{err} }

type oneLine struct{ error }

func (e oneLine) Error() string { return ErrorLine(e.error.Error()) }

func (e oneLine) Unwrap() error { return e.error }
