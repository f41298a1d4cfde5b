package replicas

import (
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, text := range []string{"10.0.0.1:6380", "[::1]:1", "limits-0.limits:65535", "[fe80::1%eth0]:6380", "a_b-c:80"} {
		a, err := ParseAddress(text)
		if err != nil || a.String() != text {
			t.Errorf("%s is %+v, which is %s: %v", text, a, a, err)
		}
	}
	for _, text := range []string{"", ":6380", "a", "a:", "a:0", "a:65536", "a:-1", "a:x", "a b:1", "a\n:1", "::1:1", "a/b:1", strings.Repeat("a", 254) + ":1", "ä:1"} {
		if a, err := ParseAddress(text); err == nil {
			t.Errorf("%q is %+v", text, a)
		}
	}
	if got := (Address{}).String(); got != "" {
		t.Errorf("no address is %q", got)
	}
}

// FuzzParseAddress: what is read is written and read again as the same, and is one word.
func FuzzParseAddress(f *testing.F) {
	f.Add("10.0.0.1:6380")
	f.Add("[::1]:1")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a || strings.ContainsAny(a.String(), " \r\n\"") {
			t.Errorf("%q is %+v, and then %+v, %v", text, a, again, err)
		}
	})
}
