package dashboard

import (
	"strings"
	"testing"
)

func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		q    quantity
		v    float64
		want string
	}{
		{count, 0, "0"}, {count, 999, "999"}, {count, 1234567, "1,234,567"}, {count, -1234, "-1,234"},
		{rate, 0, "0"}, {rate, 0.25, "0.25"}, {rate, 12.345, "12.3"}, {rate, 99.95, "100.0"}, {rate, 123456.7, "123,457"},
		{durationNs, 83, "83 ns"}, {durationNs, 1500, "1.50 µs"}, {durationNs, 2e6, "2 ms"}, {durationNs, 90e9, "90 s"},
		{byteCount, 512, "512 B"}, {byteCount, 6.25 * (1 << 20), "6.25 MiB"}, {byteCount, 3 << 30, "3 GiB"},
	} {
		if got := strings.ReplaceAll(tt.q.text(tt.v), "\u00a0", " "); got != tt.want {
			t.Errorf("%g is written %q, want %q", tt.v, got, tt.want)
		}
	}
	for ns, want := range map[uint64]string{1_500_000: "1.50 ms", 2e9: "2 s", 61e9: "1m1s", 7200e9: "2h0m0s", 1 << 62: "1281023h53m38s"} {
		if got := strings.ReplaceAll(waitText(ns), "\u00a0", " "); got != want {
			t.Errorf("%d ns is written %q, want %q", ns, got, want)
		}
	}
}

func TestEstimates(t *testing.T) {
	for v, want := range map[float64]string{0.25: "0.25", 12.345: "12.3", 999.4: "999", 1234: "1,230", 98_765_432: "98,800,000"} {
		if got := estimate(v); got != want {
			t.Errorf("%g is written %q, want %q", v, got, want)
		}
	}
}

// TestColumnTexts: a column's number is written in its quantity.
func TestColumnTexts(t *testing.T) {
	for _, tt := range []struct {
		q    quantity
		n    int64
		want string
	}{
		{rate, 12_345, "12.3"}, {share, 371, "37 %"}, {share, 99, "9.9 %"}, {share, 0, "0 %"}, {share, 1000, "100 %"}, {count, 1234, "1,234"}, {byteCount, 1 << 20, "1 MiB"}, {durationNs, 1500, "1.50 µs"},
	} {
		if got := strings.ReplaceAll(tt.q.ofColumn(tt.n), "\u00a0", " "); got != tt.want {
			t.Errorf("%d is written %q, want %q", tt.n, got, tt.want)
		}
	}
}
