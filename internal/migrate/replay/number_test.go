package replay

import (
	"math"
	"strings"
	"testing"
)

func TestParseTime(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int64
	}{
		{"0", 0},
		{"1700000000", 1_700_000_000_000_000_000},
		{"+1700000000", 1_700_000_000_000_000_000},
		{"1700000000.123456789", 1_700_000_000_123_456_789},
		{"1700000000.1234567899999", 1_700_000_000_123_456_789},
		{"1700000000.000000001", 1_700_000_000_000_000_001},
		{"00000000000000000000000000000000000001.5", 1_500_000_000},
		{"0.1", 100_000_000},
		{"-0.5", -500_000_000},
		{"-1.0000000019", -1_000_000_001},
		{"9223372036.854775807", math.MaxInt64},
		{"-9223372036.854775808", math.MinInt64},
		{"2023-11-14T22:13:20Z", 1_700_000_000_000_000_000},
		{"2023-11-14T23:13:20.5+01:00", 1_700_000_000_500_000_000},
		{"2023-11-14T22:13:20.123456789999Z", 1_700_000_000_123_456_789},
		{"1969-12-31T23:59:59.999999999Z", -1},
		{"2262-04-11T23:47:16.854775807Z", math.MaxInt64},
		{"1677-09-21T00:12:43.145224192Z", math.MinInt64},
	} {
		if got, err := parseTime(tt.in); got != tt.want || err != nil {
			t.Errorf("%q: got %d, %v, want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestParseTimeErrors(t *testing.T) {
	const noTime, beyond = "is not a time", "does not fit in 64 bits of nanoseconds"
	tests := []struct{ in, want string }{
		{"", noTime},
		{"-", noTime},
		{".5", noTime},
		{"-.5", noTime},
		{"5.", noTime},
		{"1.2.3", noTime},
		{"1.-2", noTime},
		{"1.0000000000x", noTime},
		{"1e9", noTime},
		{"0x10", noTime},
		{"1_0", noTime},
		{" 1", noTime},
		{"1 ", noTime},
		{"--1", noTime},
		{"+-1", noTime},
		{"Inf", noTime},
		{"١", noTime},
		{"2023-11-14", noTime},
		{"2023-11-14 22:13:20Z", noTime},
		{"2023-11-14T22:13:20", noTime},
		{"2023-11-14T22:13:20,5Z", noTime},
		{"2023-11-14T2:13:20Z", noTime},
		{"2023-02-29T00:00:00Z", noTime},
		{"9223372036.854775808", beyond},
		{"-9223372036.854775809", beyond},
		{"1700000000123456789", beyond},
		{"2262-04-11T23:47:16.854775808Z", beyond},
		{"1677-09-21T00:12:43.145224191Z", beyond},
		{"0000-01-01T00:00:00Z", beyond},
		{"9999-12-31T23:59:59Z", beyond},
	}
	for _, tt := range tests {
		if got, err := parseTime(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %d, %v, want an error that says %q", tt.in, got, err, tt.want)
		}
	}
}
