package vm

import (
	"math"
	"strconv"
	"testing"
)

func TestParseNumber(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"1", 1, true},
		{" \t\n\v\f\r-1.5e3 ", -1500, true},
		{"010", 10, true}, // no octal
		{"0x10", 16, true},
		{"0X1.8P1", 3, true},
		{".5", 0.5, true},
		{"5.", 5, true},
		{"1e400", math.Inf(1), true},
		{"-infinity", math.Inf(-1), true},
		{"7\x00x", 7, true},
		{"", 0, false},
		{"-", 0, false},
		{".", 0, false},
		{"1_0", 0, false},
		{"1e", 0, false},
		{"0x", 0, false},
		{"info", 0, false},
		{"1 2", 0, false},
	} {
		if f, ok := ParseNumber(c.text); f != c.want || ok != c.ok {
			t.Errorf("%q: %v, %v, want %v, %v", c.text, f, ok, c.want, c.ok)
		}
	}
	if f, ok := ParseNumber("nan"); f == f || !ok {
		t.Errorf("nan: %v, %v", f, ok)
	}
}

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		f           float64
		shown, sent string
	}{
		{0, "0", "0"},
		{math.Copysign(0, -1), "-0", "-0"},
		{15, "15", "15"},
		{0.1, "0.1", "0.10000000000000001"},
		{1e14, "1e+14", "100000000000000"},
		{1 << 53, "9.007199254741e+15", "9007199254740992"},
		{math.Inf(-1), "-inf", "-inf"},
	} {
		if shown, sent := FormatNumber(c.f), string(AppendExactNumber(nil, c.f)); shown != c.shown || sent != c.sent {
			t.Errorf("%v: %q and %q, want %q and %q", c.f, shown, sent, c.shown, c.sent)
		}
	}
}

func TestParseBase(t *testing.T) {
	for _, c := range []struct {
		text string
		base int
		want float64
		ok   bool
	}{
		{"ff", 16, 255, true},
		{" 0xFF ", 16, 255, true},
		{"zz", 36, 35*36 + 35, true},
		{"-1", 16, math.MaxUint64, true},
		{"99999999999999999999999999", 16, math.MaxUint64, true},
		{"", 16, 0, false},
		{"2", 2, 0, false},
		{"--1", 16, 0, false},
		{"1_0", 16, 0, false},
	} {
		if f, ok := ParseInteger(c.text, c.base); f != c.want || ok != c.ok {
			t.Errorf("%q in base %d: %v, %v, want %v, %v", c.text, c.base, f, ok, c.want, c.ok)
		}
	}
}

func TestTruncate(t *testing.T) {
	for f, want := range map[float64]int64{1.9: 1, -1.9: -1, 1e300: math.MinInt64, math.Inf(-1): math.MinInt64} {
		if got := TruncateNumber(f); got != want {
			t.Errorf("%v: %d, want %d", f, got, want)
		}
		if got := ReplyNumber(f); got != want {
			t.Errorf("%v in a reply: %d, want %d", f, got, want)
		}
	}
}

// TestLargestReply: what is unlimited is so in a script's reply, too.
func TestLargestReply(t *testing.T) {
	for f, want := range map[float64]int64{1 << 63: math.MaxInt64, 1<<63 + 2048: math.MinInt64, -(1 << 63): math.MinInt64} {
		if got := ReplyNumber(f); got != want {
			t.Errorf("%v: %d, want %d", f, got, want)
		}
	}
}

// FuzzParse holds that what is sent to a command reads back as the same number.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1", "-0x1.8p3", "1e400", "nan", " inf "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, ok := ParseNumber(text)
		if !ok || x != x {
			return
		}
		sent := string(AppendExactNumber(nil, x))
		if y, ok := ParseNumber(sent); !ok || y != x {
			t.Errorf("%q is %v, sent as %s, which is %s", text, x, sent, strconv.FormatFloat(y, 'g', -1, 64))
		}
	})
}
