package duration

import (
	"math"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "1w": 7 * day, "2w1d": 15 * day, "1d12h": 36 * time.Hour, "1w1d1h1m1s": 8*day + time.Hour + time.Minute + time.Second,
		"0d": 0, "007d": 7 * day, "1m": time.Minute, "-30s": -30 * time.Second, "1.5h": 90 * time.Minute, "0": 0, "1d0": day,
		"106751d": 106751 * day, "15250w1d23h47m16.854775807s": math.MaxInt64,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "d", "w", "1", "1.5d", "-1d", "+1d", "1d1w", "1d1d", "1 d", "1D", "1W", "1day", "1week", "d1", "1d-1h", "1d+1h", "1M", "1y",
		"106752d", "15251w", "106751d24h", "15250w1d23h47m16.854775808s", "99999999999999999999d", "1dw", "١d",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
