package namedlimit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/limiter/window"
)

// Algorithm decides the requests of a rule.
type Algorithm uint8

const (
	Funnel Algorithm = iota
	TokenBucket
	FixedWindow
	SlidingWindow
	ApproximateWindow
	Quota
	Algorithms
)

// String returns the name in a file of limits.
func (a Algorithm) String() string {
	return [...]string{"funnel", "token_bucket", "fixed_window", "sliding_window", "approximate_window", "quota"}[a]
}

func AlgorithmOf(name string) (a Algorithm, ok bool) {
	for a := range Algorithms {
		if a.String() == name {
			return a, true
		}
	}
	return 0, false
}

// word returns the name in a command.
func (a Algorithm) word() string {
	return [...]string{"FUNNEL", "TOKENBUCKET", "FIXEDWINDOW", "SLIDINGWINDOW", "SLIDINGWINDOW", "QUOTA"}[a]
}

// Rule defines a rule. It is comparable.
type Rule struct {
	Algorithm Algorithm
	Name      string        // identifies the state; "" for the algorithm, period and zone
	Capacity  int64         // or max_count
	Count     int64         // units that leak, or refill, in a period
	PeriodSec int64         // but of a quota
	Calendar  calendar.Spec // of a quota
	BlockSec  int64         // for which a denial shuts a key out; 0 for none
	BlockEach bool          // each denied request begins that time anew
}

// maxBlockSec is the longest block, as long as the longest period.
const maxBlockSec = int64(funnel.MaxToleranceNs / uint64(time.Second))

// CheckBlock returns an error for the time of a block.
func CheckBlock(sec int64) error {
	if sec < 1 || sec > maxBlockSec {
		return fmt.Errorf("block must be 1 to %d seconds, got %d", maxBlockSec, sec)
	}
	return nil
}

// Number is a number of a rule, with the name of its field in a file of limits.
type Number struct {
	Field string
	Value *int64
}

// Numbers returns the rule's numbers in the order of a command.
func (r *Rule) Numbers() []Number {
	switch r.Algorithm {
	case Funnel:
		return []Number{{"capacity", &r.Capacity}, {"count", &r.Count}, {"period", &r.PeriodSec}}
	case TokenBucket:
		return []Number{{"capacity", &r.Capacity}, {"refill", &r.Count}, {"period", &r.PeriodSec}}
	case Quota:
		return []Number{{"max_count", &r.Capacity}}
	default:
		return []Number{{"max_count", &r.Capacity}, {"period", &r.PeriodSec}}
	}
}

// MaxBurst returns the command's argument for the capacity, -1 for capacity 0.
func (r *Rule) MaxBurst(reading funnel.Reading) int64 {
	if reading == funnel.Burst {
		return r.Capacity - 1
	}
	return r.Capacity
}

// Identity returns the text by which the rule's state is known.
func (r *Rule) Identity() string {
	switch {
	case r.Name != "":
		return "name " + r.Name
	case r.Algorithm == Quota:
		spec := r.Calendar.Normal()
		return r.Algorithm.String() + " " + spec.Every.String() + " " + spec.Zone
	}
	return r.Algorithm.String() + " " + strconv.FormatInt(r.PeriodSec, 10)
}

// Label names the rule in metrics.
func (r *Rule) Label() string {
	if r.Name != "" {
		return r.Name
	}
	return strings.TrimSuffix(r.Identity(), " ")
}

func CheckRule(r *Rule, calendars *calendar.Set) error {
	_, err := r.made(calendars)
	return err
}

// build checks the rule and returns the one to decide by.
func (r *Rule) build(calendars *calendar.Set) (n limiter.NamedRule, err error) {
	rule, err := r.made(calendars)
	switch {
	case err != nil:
		return n, err
	case r.Algorithm == Funnel && r.Name == "":
		n = limiter.PlainRule(rule.Funnel, r.PeriodSec*int64(time.Second))
	default:
		n = limiter.OtherRule(rule, r.Identity())
	}
	if r.BlockSec > 0 {
		n = n.Blocking(r.BlockSec*int64(time.Second), r.BlockEach, r.Text(funnel.Capacity))
	}
	return n, nil
}

// made checks the rule and returns it without an identity.
func (r *Rule) made(calendars *calendar.Set) (rule limiter.Rule, err error) {
	if r.Name != "" {
		if err := checkName("a rule", []byte(r.Name)); err != nil {
			return rule, err
		}
	}
	if wrong := r.WrongRate(); wrong != nil {
		return rule, wrong
	}
	if r.BlockSec != 0 {
		if err := CheckBlock(r.BlockSec); err != nil {
			return rule, err
		}
	}
	s, err := r.Spec(funnel.Capacity, calendars)
	if err != nil {
		return rule, err
	}
	if err := s.Build(&rule); err != nil {
		return rule, r.named(err)
	}
	return rule, nil
}

// Spec returns the rule as a command has it, a funnel with its first number as it is read.
func (r *Rule) Spec(reading funnel.Reading, calendars *calendar.Set) (s limiter.Spec, err error) {
	kinds := [...]limiter.Kind{
		Funnel: limiter.Funnel, TokenBucket: limiter.Funnel, FixedWindow: limiter.FixedWindow, SlidingWindow: limiter.SlidingWindow,
		ApproximateWindow: limiter.ApproxWindow, Quota: limiter.Quota,
	}
	s = limiter.Spec{Kind: kinds[r.Algorithm], Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{r.Capacity, r.PeriodSec}}
	switch r.Algorithm {
	case Funnel, TokenBucket:
		if r.PeriodSec > math.MaxInt64/int64(time.Second) {
			return s, window.ErrTooLong
		}
		s.Unit, s.Reading, s.Numbers = funnel.Seconds, reading, limiter.Numbers{r.MaxBurst(reading), r.Count, r.PeriodSec}
	case Quota:
		s.Numbers = limiter.Numbers{r.Capacity}
		s.Calendar, err = calendars.Of(r.Calendar)
	default:
	}
	return s, err
}

// RateError is about a rule's number by which no unit, or any number at once, would be allowed.
type RateError struct {
	Field string
	text  string
}

func (e *RateError) Error() string { return e.text }

// WrongRate returns what is wrong about the rate of a funnel or a token bucket, or nil. The arithmetic
// calls each of these a rate of zero, as redis-cell does.
func (r *Rule) WrongRate() *RateError {
	count := "count"
	switch r.Algorithm {
	case Funnel:
	case TokenBucket:
		count = "refill"
	default:
		return nil
	}
	const most = int64(time.Second) // one a nanosecond
	least := func(field string, n int64) *RateError {
		return &RateError{field, field + " must be at least 1, got " + strconv.FormatInt(n, 10)}
	}
	switch {
	case r.Count < 1:
		return least(count, r.Count)
	case r.PeriodSec < 1:
		return least("period", r.PeriodSec)
	case r.Count/most > r.PeriodSec || r.Count/most == r.PeriodSec && r.Count%most > 0:
		return &RateError{count, fmt.Sprintf("%s must be at most %d for each second of the period, got %d in %d s", count, most, r.Count, r.PeriodSec)}
	}
	return nil
}

// named puts the algorithm's argument names into a limit's error.
func (r *Rule) named(err error) error {
	var argument *funnel.ArgumentError
	if errors.As(err, &argument) && r.Algorithm == TokenBucket {
		argument.Name = "capacity"
	}
	var many *window.TooManyError
	if errors.As(err, &many) {
		return fmt.Errorf("max_count of a sliding_window must be at most %d, got %d; an approximate_window has a larger one", window.MaxExact, many.MaxCount)
	}
	return err
}
