package resp

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"plain text, 'quoted' \"twice\"", "plain text, 'quoted' \"twice\""},
		{`a\b`, `a\b`},
		{"a\r\nb\tc", `a\r\nb\tc`},
		{"\x00\x01\x07\x08\x0b\x0c\x1b\x1f\x7f", `\x00\x01\x07\x08\x0b\x0c\x1b\x1f\x7f`},
		{"\xff\xfe\x80", `\xff\xfe\x80`},
		{"\xc3", `\xc3`}, // the first half of é
		{"\xc3(", `\xc3(`},
		{"\xc0\x8a", `\xc0\x8a`},             // an overlong newline
		{"\xed\xa0\x80", `\xed\xa0\x80`},     // a surrogate
		{"\u0085\u009b", `\xc2\x85\xc2\x9b`}, // C1: next line, control sequence introducer
		{"\u2028\u2029", `\xe2\x80\xa8\xe2\x80\xa9`},
		{"\u202e\u200b\ufeff", `\xe2\x80\xae\xe2\x80\x8b\xef\xbb\xbf`},
		{"\u00a0", `\xc2\xa0`},
		{"é 漢字 😀", "é 漢字 😀"},
		{"\ufffd", "\ufffd"}, // itself, not an error
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 100), strings.Repeat("x", 64)},
		{strings.Repeat("\r\n", 100), strings.Repeat(`\r\n`, 16)},
		{strings.Repeat("\x00", 100), strings.Repeat(`\x00`, 16)},
		{strings.Repeat("x", 62) + "\x00y", strings.Repeat("x", 62)}, // an escape is neither cut nor skipped for later text
		{strings.Repeat("x", 63) + "\ny", strings.Repeat("x", 63)},
		{strings.Repeat("x", 62) + "漢y", strings.Repeat("x", 62)},
		{strings.Repeat("x", 61) + "漢y", strings.Repeat("x", 61) + "漢"},
		{strings.Repeat("x", 61) + "😀", strings.Repeat("x", 61)},
		{strings.Repeat("x", 60) + "\u2028", strings.Repeat("x", 60) + `\xe2`}, // its bytes are separate escapes
	} {
		if got := Printable([]byte(tt.in)); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestPrintableN(t *testing.T) {
	const in = "a\r漢\x00"
	for maxBytes, want := range []string{"", "a", "a", `a\r`, `a\r`, `a\r`, `a\r漢`, `a\r漢`, `a\r漢`, `a\r漢`, `a\r漢\x00`, `a\r漢\x00`} {
		if got := PrintableN([]byte(in), maxBytes); got != want {
			t.Errorf("%d bytes: got %q, want %q", maxBytes, got, want)
		}
	}
}

// TestPrintableIsOneLineOfText: for any bytes and any bound, and always a prefix of the complete text.
func TestPrintableIsOneLineOfText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	check := func(in []byte) {
		whole := PrintableN(in, 4*len(in))
		for _, maxBytes := range []int{len(whole), random.IntN(len(whole) + 1), 64} {
			got := PrintableN(in, maxBytes)
			switch {
			case len(got) > maxBytes:
				t.Errorf("%q: %d bytes, more than %d", in, len(got), maxBytes)
			case !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }):
				t.Errorf("%q: %q is not text", in, got)
			case !strings.HasPrefix(whole, got) || len(whole) <= maxBytes && got != whole:
				t.Errorf("%q in %d bytes: got %q of %q", in, maxBytes, got, whole)
			case len(got) < len(whole) && maxBytes-len(got) > 3:
				t.Errorf("%q in %d bytes: stops at %q", in, maxBytes, got)
			}
		}
	}
	for c := range 256 {
		check([]byte{byte(c)})
		check([]byte{'a', byte(c), 'b'})
	}
	for range 2000 {
		in := make([]byte, 1+random.IntN(40))
		for i := range in {
			in[i] = byte(random.Uint32())
		}
		check(in)
		check([]byte(string([]rune{rune(random.IntN(0x3000)), rune(random.IntN(0x11000))})))
	}
}

func TestOneLine(t *testing.T) {
	base := errors.New("ERR a\r\nb\x1b[2J" + strings.Repeat("x", 1<<20))
	err := OneLine(base)
	if text := err.Error(); len(text) > maxErrorBytes || !strings.HasPrefix(text, `ERR a\r\nb\x1b[2Jxxx`) ||
		!errors.Is(err, base) {
		t.Errorf("got %.50s, %d bytes", text, len(text))
	}
}
