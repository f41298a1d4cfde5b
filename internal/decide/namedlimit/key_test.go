package namedlimit

import (
	"slices"
	"strings"
	"testing"

	"cellserver/internal/test/randtest"
)

func TestAppendKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{[]string{"acme"}, "acme"},
		{[]string{""}, ""},
		{[]string{"2001:db8::/64"}, "2001:db8::/64"},
		{[]string{"acme", "/v1/x"}, "4:acme,5:/v1/x"},
		{[]string{"", ""}, "0:,0:"},
		{[]string{"4:acme"}, "6:4:acme"},
		{[]string{"4:acme,3:foo"}, "12:4:acme,3:foo"},
		{[]string{"6:4:acme"}, "8:6:4:acme"},
		{[]string{"0:"}, "2:0:"},
		{[]string{"1:"}, "1:"},
		{[]string{"1:a,"}, "1:a,"},
		{[]string{"04:acme"}, "04:acme"},
		{[]string{"+4:acme"}, "+4:acme"},
		{[]string{"0"}, "0"},
		{[]string{"4:acme,3:fo"}, "4:acme,3:fo"},
		{[]string{"4:acme,3:foo", "x"}, "12:4:acme,3:foo,1:x"},
	} {
		if got := string(AppendKey([]byte("k"), tt.parts...)); got != "k"+tt.want {
			t.Errorf("%q make %q, want %q", tt.parts, got[1:], tt.want)
		}
	}
}

// TestKeysOfPartsDiffer: the parts can be told from the key, so no two lists share one.
func TestKeysOfPartsDiffer(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	tokens := []string{"0", "1", "2", "3", "4", "6", "12", ":", ":", ",", "", "a", "acme", "\x00", "é"}
	value := func() string {
		switch r.IntN(3) {
		case 0: // which reads as a list
			return string(AppendKey(nil, pick(tokens), pick(tokens)))
		case 1:
			return string(AppendKey(nil, string(AppendKey(nil, pick(tokens), pick(tokens)))))
		}
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(pick(tokens))
		}
		return b.String()
	}
	for range 200_000 {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = value()
		}
		key := string(AppendKey(nil, parts...))
		told := SplitKey(key)
		if told == nil {
			told = []string{key}
		}
		if !slices.Equal(told, parts) {
			t.Fatalf("%q make the key %q, which is also that of %q", parts, key, told)
		}
	}
}

func TestHashPart(t *testing.T) {
	t.Parallel()
	const want = "2bb80d537b1da3e38bd30361aa855686" // printf %s secret | sha256sum | head -c 32
	if got := HashPart("secret"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
