package resp

import (
	"testing"
	"unicode"
)

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ bytes, want string }{
		{"laoqian:reply", "laoqian:reply"},
		{`it's "so"`, `it's "so"`},
		{`a\b`, `a\b`},
		{"键", "键"},
		{"<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"},
		{"", `""`},
		{`"`, `"\""`},
		{`"a\`, `"\"a\\"`},
		{" a", `" a"`},
		{"a ", `"a "`},
		{"a\r\nb", `"a\x0d\x0ab"`},
		{"\x00\xff", `"\x00\xff"`},
		{"a\u202eb", `"a\xe2\x80\xaeb"`}, // would reverse the text direction
	} {
		if got := Quote([]byte(tt.bytes)); got != tt.want {
			t.Errorf("Quote(%q) = %s, want %s", tt.bytes, got, tt.want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, tt := range []struct {
		word, want string
		ok         bool
	}{
		{"", "", true},
		{"a b", "a b", true},
		{`a\x41`, `a\x41`, true},
		{`"a\x41\n"`, "aA\n", true},
		{`""`, "", true},
		{`"`, "", false},
		{`"a`, "", false},
		{`"a" `, "", false},
		{`"a"b`, "", false},
		{`"a\"`, "", false},
	} {
		if got, ok := Unquote(tt.word); ok != tt.ok || ok && string(got) != tt.want {
			t.Errorf("Unquote(%q) = %q, %v; want %q, %v", tt.word, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", `"`, `\`, "\xff\x00", " ", "键\u202e"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		quoted := Quote(b)
		for _, r := range quoted {
			if !unicode.IsPrint(r) {
				t.Fatalf("Quote(%q) = %q has %q", b, quoted, r)
			}
		}
		if got, ok := Unquote(quoted); !ok || string(got) != string(b) {
			t.Fatalf("%q is quoted as %s, which is read as %q, %v", b, quoted, got, ok)
		}
		_, _ = Unquote(string(b))
	})
}
