package namedlimit

import (
	"math"
	"testing"
)

func TestDollars(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		micros int64
		want   string
	}{
		{0, "$0.00"},
		{1, "$0.000001"},
		{2_500, "$0.0025"},
		{9_999, "$0.009999"},
		{10_000, "$0.01"},
		{10_001, "$0.01"},
		{370_000, "$0.37"},
		{12_340_000, "$12.34"},
		{12_349_999, "$12.34"}, // never more than there is
		{49_999_999, "$49.99"},
		{50_000_000, "$50.00"},
		{999_990_000, "$999.99"},
		{1_000_000_000, "$1,000.00"},
		{1_234_567_890_000, "$1,234,567.89"},
		{math.MaxInt64, "$9,223,372,036,854.77"},
		{-1, "-$0.000001"},
		{-1_500_000, "-$1.50"},
		{math.MinInt64, "-$9,223,372,036,854.77"},
	} {
		if got := Dollars(tt.micros); got != tt.want {
			t.Errorf("%d is %s, want %s", tt.micros, got, tt.want)
		}
	}
}
