package report

import (
	"math"
	"slices"
	"strconv"
)

// Spread is the median, the minimum and the maximum of some values.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// NewSpread of no values is zero.
func NewSpread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// In returns the spread divided by unit.
func (s Spread) In(unit float64) Spread { return Spread{s.Median / unit, s.Min / unit, s.Max / unit} }

// String formats the median and the spread, each with three significant digits.
func (s Spread) String() string {
	if s.Min == s.Max {
		return digits(s.Median)
	}
	return digits(s.Median) + " (" + digits(s.Min) + ".." + digits(s.Max) + ")"
}

// digits formats v with three significant digits and no exponent.
func digits(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	places := max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0)
	return strconv.FormatFloat(v, 'f', places, 64)
}
