package funnel

import (
	"errors"
	"strconv"
)

// ErrZeroRate reports a zero interval: count or period is 0, or count exceeds one a nanosecond.
var ErrZeroRate = errors.New("Zero rates are not supported") //nolint:staticcheck // redis-cell's wording

// ErrTooSlow reports a funnel that takes more than 2^62 ns to drain.
var ErrTooSlow = errors.New("the funnel would take more than 2^62 ns (146 years) to drain; use a smaller max_burst or period, or a larger count")

// ArgumentError is an argument below its minimum.
type ArgumentError struct {
	Name         string
	Value, Least int64
}

func (e *ArgumentError) Error() string {
	return e.Name + " must be at least " + strconv.FormatInt(e.Least, 10) + ", got " + strconv.FormatInt(e.Value, 10)
}

func checkArguments(reading Reading, maxBurst, count, periodSec int64) error {
	leastBurst := int64(0)
	if reading == Capacity {
		leastBurst = 1
	}
	switch {
	case maxBurst < leastBurst:
		return &ArgumentError{Name: "max_burst", Value: maxBurst, Least: leastBurst}
	case count < 0:
		return &ArgumentError{Name: "count", Value: count}
	case periodSec < 0:
		return &ArgumentError{Name: "period", Value: periodSec}
	}
	return nil
}
