package window

import (
	"errors"
	"strconv"

	"cellserver/internal/funnel"
)

// ErrTooLong reports a period of more than 2^62 ns.
var ErrTooLong = errors.New("the period is more than 2^62 ns (146 years); use a smaller one")

// TooManyError reports a max_count that needs too many records.
type TooManyError struct{ MaxCount int64 }

func (e *TooManyError) Error() string {
	return "max_count must be at most " + strconv.Itoa(MaxExact) + " for an exact window, got " +
		strconv.FormatInt(e.MaxCount, 10) + "; add APPROX for a larger one"
}

func checkArguments(maxCount, period int64) error {
	switch {
	case maxCount < 1:
		return &funnel.ArgumentError{Name: "max_count", Value: maxCount, Least: 1}
	case period < 1:
		return &funnel.ArgumentError{Name: "period", Value: period, Least: 1}
	}
	return nil
}
