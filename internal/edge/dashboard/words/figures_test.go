package words

import (
	"strings"
	"testing"
)

func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		q    Quantity
		v    float64
		want string
	}{
		{Count, 0, "0"}, {Count, 999, "999"}, {Count, 1234567, "1,234,567"}, {Count, -1234, "-1,234"},
		{Rate, 0, "0"}, {Rate, 0.25, "0.25"}, {Rate, 12.345, "12.3"}, {Rate, 99.95, "100.0"}, {Rate, 123456.7, "123,457"},
		{DurationNs, 83, "83 ns"}, {DurationNs, 1500, "1.50 µs"}, {DurationNs, 2e6, "2 ms"}, {DurationNs, 90e9, "90 s"},
		{Bytes, 512, "512 B"}, {Bytes, 6.25 * (1 << 20), "6.25 MiB"}, {Bytes, 3 << 30, "3 GiB"},
	} {
		if got := strings.ReplaceAll(tt.q.Text(tt.v), "\u00a0", " "); got != tt.want {
			t.Errorf("%g is written %q, want %q", tt.v, got, tt.want)
		}
	}
	for ns, want := range map[uint64]string{1_500_000: "1.50 ms", 2e9: "2 s", 61e9: "1m1s", 7200e9: "2h0m0s", 1 << 62: "1281023h53m38s"} {
		if got := strings.ReplaceAll(Wait(ns), "\u00a0", " "); got != want {
			t.Errorf("%d ns is written %q, want %q", ns, got, want)
		}
	}
}

func TestEstimates(t *testing.T) {
	for v, want := range map[float64]string{0.25: "0.25", 12.345: "12.3", 999.4: "999", 1234: "1,230", 98_765_432: "98,800,000"} {
		if got := Estimate(v); got != want {
			t.Errorf("%g is written %q, want %q", v, got, want)
		}
	}
}

func TestColumnTexts(t *testing.T) {
	for _, tt := range []struct {
		q    Quantity
		n    int64
		want string
	}{
		{Rate, 12_345, "12.3"}, {Count, 1234, "1,234"}, {Bytes, 1 << 20, "1 MiB"}, {DurationNs, 1500, "1.50 µs"},
	} {
		if got := strings.ReplaceAll(tt.q.OfColumn(tt.n), "\u00a0", " "); got != tt.want {
			t.Errorf("%d is written %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{0.371: "37 %", 0.099: "9.9 %", 0: "0 %", 1: "100 %"} {
		if got := strings.ReplaceAll(Percent(share), "\u00a0", " "); got != want {
			t.Errorf("%g is written %q, want %q", share, got, want)
		}
	}
}
