package resp

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestParseInt: Redis's string2ll.
func TestParseInt(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"1", 1, true},
		{"-1", -1, true},
		{"10", 10, true},
		{"9223372036854775807", math.MaxInt64, true},
		{"-9223372036854775807", -math.MaxInt64, true},
		{"-9223372036854775808", math.MinInt64, true},
		{in: "9223372036854775808"},
		{in: "-9223372036854775809"},
		{in: "9223372036854775810"},
		{in: "9999999999999999999"},
		{in: "18446744073709551615"},
		{in: "18446744073709551616"},
		{in: "-18446744073709551616"},
		{in: "92233720368547758070"},
		{in: strings.Repeat("9", 1000)},
		{in: ""},
		{in: "-"},
		{in: "+"},
		{in: "+1"},
		{in: "--1"},
		{in: "-+1"},
		{in: "-0"},
		{in: "00"},
		{in: "01"},
		{in: "-01"},
		{in: "1-"},
		{in: " 1"},
		{in: "1 "},
		{in: "1\x00"},
		{in: "\x001"},
		{in: "1.0"},
		{in: "1e3"},
		{in: "0x1"},
		{in: "1_000"},
		{in: "a"},
		{in: "1a"},
		{in: "/"}, // next to the digits in ASCII
		{in: ":"},
		{in: "1/"},
		{in: "1:"},
		{in: "１"},
	} {
		if got, ok := ParseInt([]byte(tt.in)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%.30q: got %d, %v, want %d, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

// TestParseIntReadsWhatIsWritten: formatted integers near every power of two and ten are parsed.
func TestParseIntReadsWhatIsWritten(t *testing.T) {
	check := func(n int64) {
		if got, ok := ParseInt(strconv.AppendInt(nil, n, 10)); !ok || got != n {
			t.Errorf("%d: got %d, %v", n, got, ok)
		}
	}
	for bit := range 64 {
		for _, d := range []int64{-1, 0, 1} {
			check(int64(1)<<bit + d)
			check(-(int64(1) << bit) + d)
		}
	}
	for power, n := 0, int64(1); power < 19; power, n = power+1, n*10 {
		check(n)
		check(n - 1)
		check(-n)
	}
}
