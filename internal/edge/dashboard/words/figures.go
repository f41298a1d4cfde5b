package words

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Quantity is the kind of a number, which decides its format: the largest unit that fits.
type Quantity uint8

const (
	Count Quantity = iota
	Rate           // per second
	DurationNs
	Bytes
)

// MarshalText returns the quantity's name in the page's script.
func (q Quantity) MarshalText() ([]byte, error) {
	return []byte([...]string{Count: "count", Rate: "rate", DurationNs: "duration", Bytes: "bytes"}[q]), nil
}

// OfColumn formats a number of a chart column, where rates are in thousandths.
func (q Quantity) OfColumn(n int64) string {
	if q == Rate {
		return q.Text(float64(n) / 1000)
	}
	return q.Text(float64(n))
}

type unit struct {
	factor float64
	name   string
}

// unitFor returns the largest unit that does not exceed v.
func (q Quantity) unitFor(v float64) unit {
	var units [4]unit
	switch q {
	case Count, Rate:
		units = [4]unit{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}}
	case DurationNs:
		units = [4]unit{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	case Bytes:
		units = [4]unit{{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}}
	}
	best := units[0]
	for _, u := range units[1:] {
		if v >= u.factor {
			best = u
		}
	}
	return best
}

// Text formats a value: counts in full, everything else with three digits and a unit.
func (q Quantity) Text(v float64) string {
	if q == Count {
		return Grouped(int64(v))
	}
	if q == Rate && v >= 100 {
		return Grouped(int64(math.Round(v)))
	}
	u := q.unitFor(v)
	return u.label(threeDigits(v / u.factor))
}

func (u unit) label(number string) string {
	if u.name == "" {
		return number
	}
	return number + "\u00a0" + u.name
}

func threeDigits(v float64) string {
	decimals := 2
	switch {
	case v >= 100 || v == math.Trunc(v):
		decimals = 0
	case v >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Grouped formats a number with a comma every three digits.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Percent formats a share, with a decimal below ten percent.
func Percent(share float64) string {
	decimals := 0
	if percents := 100 * share; percents < 9.95 && percents > 0 {
		decimals = 1
	}
	return strconv.FormatFloat(100*share, 'f', decimals, 64) + "\u00a0%"
}

// Estimate formats an estimated rate, rounded to three digits.
func Estimate(perSec float64) string { return Rate.Text(rounded(perSec)) }

// About formats an estimated count, rounded to three digits.
func About(n float64) string { return Grouped(int64(math.Round(rounded(n)))) }

// rounded rounds what has more than three digits to three.
func rounded(n float64) float64 {
	unit := 1.0
	for n/unit >= 1000 {
		unit *= 10
	}
	if unit == 1 {
		return n
	}
	return math.Round(n/unit) * unit
}

// WholePercent formats a share without decimals.
func WholePercent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 0, 64) + "\u00a0%"
}

// Wait formats a waiting time: below a minute with a unit, above as 2h3m0s.
func Wait(ns uint64) string {
	if d := time.Duration(min(ns, math.MaxInt64)); d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return DurationNs.Text(float64(ns))
}
