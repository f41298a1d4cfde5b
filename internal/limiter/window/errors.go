package window

import (
	"errors"
	"strconv"

	"cellserver/internal/funnel"
)

// ErrTooLong means that the period is more than 2^62 ns.
var ErrTooLong = errors.New("the period is more than 2^62 ns (146 years); use a smaller one")

// TooManyError is a max_count for which an exact window would keep too many records.
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
