package resp

import (
	"strconv"
	"strings"
	"testing"
)

// TestParseInt: numbers as in Redis's string2ll, a stricter form than strconv's.
func TestParseInt(t *testing.T) {
	for _, in := range []string{
		"9223372036854775808", "-9223372036854775809", "9223372036854775810", "9999999999999999999", "18446744073709551615",
		"18446744073709551616", "-18446744073709551616", "92233720368547758070", strings.Repeat("9", 1000),
		"", "-", "+", "+1", "--1", "-+1", "-0", "00", "01", "-01", "1-", " 1", "1 ", "1\x00", "\x001", "1.0", "1e3", "0x1", "1_000",
		"a", "1a", "/", ":", "1/", "1:", // next to the digits in ASCII
		"１",
	} {
		if got, ok := ParseInt([]byte(in)); ok {
			t.Errorf("%.30q: got %d, want none", in, got)
		}
	}
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
