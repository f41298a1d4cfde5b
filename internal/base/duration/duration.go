// Package duration reads durations with days and weeks, which package time does not have. It is constant.
package duration

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

var errNone = errors.New("duration: not numbers with units, such as 30s, 1h30m, 1d or 1w")

// Parse reads what time.ParseDuration does, after whole weeks and days of 24 hours, if any: 1w2d12h.
func Parse(text string) (time.Duration, error) {
	sum, rest := time.Duration(0), text
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		digits, after, found := strings.Cut(rest, unit.letter)
		if !found || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > (math.MaxInt64-int64(sum))/int64(unit.length) {
			return 0, errNone
		}
		sum, rest = sum+time.Duration(n)*unit.length, after
	}
	if rest == "" && rest != text {
		return sum, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || rest != text && (d < 0 || rest[0] == '+') || d > math.MaxInt64-sum {
		return 0, errNone
	}
	return sum + d, nil
}
