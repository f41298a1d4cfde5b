package replay

import (
	"fmt"
	"strings"
	"testing"
)

func summary(t *testing.T, in string, top int, o Options) string {
	t.Helper()
	s, err := Summarize(t.Context(), strings.NewReader(in), o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Print(&b, top); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSummary(t *testing.T) {
	const in = `at,key,max_burst,count,period
2023-11-14T22:13:20Z,often,0,1,10
2023-11-14T22:13:20Z,often,0,1,10
2023-11-14T22:13:20Z,"two
lines",0,1,10
bad,often,0,1,10
2023-11-14T22:13:21Z,"two
lines",0,1,10
2023-11-14T22:13:22Z,often,0,1,10
2023-11-14T22:13:22Z,again,0,1,10
2023-11-14T22:13:22Z,again,0,1,10
2023-11-14T22:13:30.5Z,often,0,1,10
2023-11-14T22:13:30.5Z,other,0,1,10
`
	const totals = `rows           9
allowed        5
limited        4
limited share  44.44 %
first          2023-11-14T22:13:20Z
last           2023-11-14T22:13:30.5Z
time span      10.5s
skipped rows   1
`
	for _, tt := range []struct {
		top  int
		want string
	}{
		{10, totals + "\nmost limited keys\n2  often\n1  again\n1  \"two\\nlines\"\n"},
		{2, totals + "\nmost limited keys\n2  often\n1  again\n"},
		{0, totals},
	} {
		if got := summary(t, in, tt.top, Options{SkipBad: true}); got != tt.want {
			t.Errorf("top %d: got\n%s\nwant\n%s", tt.top, got, tt.want)
		}
	}
}

func TestSummaryOfNothing(t *testing.T) {
	got := summary(t, "at,key,max_burst,count,period\n", 10, Options{})
	if want := "rows          0\nallowed       0\nlimited       0\nskipped rows  0\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSummaryOfMoreKeysThanCounters(t *testing.T) {
	var in strings.Builder
	in.WriteString("at,key,max_burst,count,period,quantity\n")
	for key := range limitedCounters + 1 {
		fmt.Fprintf(&in, "0,%05d,0,1,1,2\n", key)
		if key < limitedCounters {
			fmt.Fprintf(&in, "0,often,0,1,1,2\n")
		}
	}
	got := summary(t, in.String(), 2, Options{})
	want := fmt.Sprintf("\nmost limited keys\n%d                   often\n2 (at most 1 too high)  %05d\n", limitedCounters, limitedCounters-1)
	if !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant it to end in\n%s", got, want)
	}
}

func TestOnOneLine(t *testing.T) {
	tests := []struct{ key, want string }{
		{"user:1", "user:1"},
		{"two words, żółw", "two words, żółw"},
		{"", `""`},
		{" a", `" a"`},
		{"a ", `"a "`},
		{"a\tb", `"a\tb"`},
		{"a\nb", `"a\nb"`},
		{"a\u2028b", `"a\u2028b"`},
		{"\u202eb", `"\u202eb"`},
		{"\x1b[2J", `"\x1b[2J"`},
		{"\xff", `"\xff"`},
		{`"a"`, `"\"a\""`},
		{`a\b`, `"a\\b"`},
	}
	for _, tt := range tests {
		if got := onOneLine(tt.key); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.key, got, tt.want)
		}
	}
}
