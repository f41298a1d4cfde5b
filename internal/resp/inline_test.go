package resp

import (
	"fmt"
	"slices"
	"testing"
)

// TestSplitInline: each line was verified with redis-server 7.0.15, after EVAL "return ARGV" 0.
func TestSplitInline(t *testing.T) {
	type test struct {
		line string
		want []string // nil: a quote is not closed, or not followed by white space
	}
	tests := []test{
		{"", []string{}},
		{"  \t ", []string{}},
		{"PING", []string{"PING"}},
		{"  SET  a\tb  ", []string{"SET", "a", "b"}},

		// Only these four end a word; all white space before a word is skipped.
		{"\v\fa\vb", []string{"a\vb"}},
		{"a\fb c", []string{"a\fb", "c"}},
		{"a \v \fb", []string{"a", "b"}},
		{"a\v", []string{"a\v"}},
		{"a\rb", []string{"a", "b"}},

		{`""`, []string{""}},
		{`''`, []string{""}},
		{`"" ''`, []string{"", ""}},
		{`"a b" 'c d'`, []string{"a b", "c d"}},
		{`"a"` + "\v" + `b`, []string{"a", "b"}},
		{`"a"` + "\f", []string{"a"}},
		{`a"b c"`, []string{"ab c"}},
		{`a'b c' d`, []string{"ab c", "d"}},
		{`"a'b"`, []string{"a'b"}},
		{`'a"b'`, []string{`a"b`}},

		{`"\n\r\t\b\a"`, []string{"\n\r\t\b\a"}},
		{`"\"\\\q\'"`, []string{`"\q'`}},
		{`"\x41\x0a\xfF\x00"`, []string{"A\n\xff\x00"}},
		{`"\x4g\xZ\x"`, []string{"x4gxZx"}},
		{`'it\'s'`, []string{"it's"}},
		{`'\n\x41\"'`, []string{`\n\x41\"`}},
		{`'\\''`, []string{`\'`}},
		{`a\ b\x41`, []string{`a\`, `b\x41`}},
	}
	for _, line := range []string{
		`a"b"'c'`, `"a""b"`, `"a"b`, `'a'b`, // a word ends at its first closing quote
		`'\\'`,       // the second backslash escapes the quote, the first one does not escape the second
		`a\ b\x41\'`, // outside of quotes a backslash is literal, and does not escape a quote
		`"\x4`, `"`, `'`, `a "b`, `a 'b`, `"a\`, `"a\"`, `'a\'`, `'a\`, `'\`,
	} {
		tests = append(tests, test{line, nil})
	}
	for _, tt := range tests {
		args, ok := SplitInline([]byte(tt.line), nil)
		if got := texts(args); ok != (tt.want != nil) || ok && !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, %v, want %q", tt.line, got, ok, tt.want)
		}
		if want, wantOK := splitByTheBook(tt.line); wantOK != (tt.want != nil) || wantOK && !slices.Equal(want, tt.want) {
			t.Errorf("%q: the model says %q, %v, want %q", tt.line, want, wantOK, tt.want)
		}
	}
}

// TestSplitInlineEveryByte: each byte alone, inside a word, and after each type of quotes.
func TestSplitInlineEveryByte(t *testing.T) {
	for c := range 256 {
		if c == 0 || c == '\n' { // SplitInline never receives these
			continue
		}
		for _, format := range []string{"%c", "a%cb", `"a"%c`, `'a'%c`, `"%c"`, `'%c'`, `"\%c"`, `'\%c'`, `"\x4%c"`, `"\x%c4"`} {
			line := []byte(fmt.Sprintf(format, '\x01'))
			line[slices.Index(line, '\x01')] = byte(c)
			want, wantOK := splitByTheBook(string(line))
			args, ok := SplitInline(slices.Clone(line), nil)
			if ok != wantOK || ok && !slices.Equal(texts(args), want) {
				t.Errorf("%q: got %q, %v, want %q, %v", line, texts(args), ok, want, wantOK)
			}
		}
	}
}

// splitByTheBook is a model of Redis's sdssplitargs: slow, and with its own memory.
func splitByTheBook(line string) (words []string, ok bool) {
	at := func(i int) byte {
		if i < len(line) {
			return line[i]
		}
		return 0 // the end of a C string
	}
	isBlank := func(c byte) bool { return slices.Contains([]byte(" \t\n\v\f\r"), c) }
	for i := 0; ; {
		for isBlank(at(i)) {
			i++
		}
		if at(i) == 0 {
			return words, true
		}
		var word []byte
		for quote, open := byte(0), true; open; i++ {
			c, width := at(i), 1
			switch {
			case c == 0 && quote != 0:
				return nil, false
			case quote == 0 && slices.Contains([]byte(" \t\n\r\x00"), c):
				open, width = false, 0
			case quote == 0 && (c == '"' || c == '\''):
				quote, width = c, 0
			case c == quote:
				if next := at(i + 1); next != 0 && !isBlank(next) {
					return nil, false
				}
				open, width = false, 0
			case quote == '\'' && c == '\\' && at(i+1) == '\'':
				c, i = '\'', i+1
			case quote == '"' && c == '\\' && at(i+1) != 0:
				var hex byte
				if n, _ := fmt.Sscanf(line[i+1:min(i+4, len(line))], "x%02x", &hex); n == 1 && isHex(at(i+2)) && isHex(at(i+3)) {
					c, i = hex, i+3
				} else {
					c, i = plainEscape(at(i+1)), i+1
				}
			}
			word = append(word, []byte{c}[:width]...)
		}
		words = append(words, string(word))
	}
}

func isHex(c byte) bool { return c != 0 && slices.Contains([]byte("0123456789abcdefABCDEF"), c) }

func plainEscape(c byte) byte {
	if i := slices.Index([]byte("nrtba"), c); i >= 0 {
		return "\n\r\t\b\a"[i]
	}
	return c
}

// FuzzInline compares with the model.
func FuzzInline(f *testing.F) {
	for _, seed := range []string{
		"SET a b", `a"b c" 'd\'e'`, `"\x41\n\q" x`, `"a"b`, "\va\vb \f", `'`, `"\`, `"\x4`, "\t\r a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if slices.ContainsFunc([]byte(line), func(c byte) bool { return c == 0 || c == '\n' }) {
			t.Skip("SplitInline never receives these")
		}
		want, wantOK := splitByTheBook(line)
		args, ok := SplitInline([]byte(line), nil)
		if ok != wantOK || ok && !slices.Equal(texts(args), want) {
			t.Fatalf("got %q, %v, want %q, %v", texts(args), ok, want, wantOK)
		}
	})
}
