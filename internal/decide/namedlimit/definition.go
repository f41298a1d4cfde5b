// Package namedlimit has the named limits: their definitions, the origin of each, and the counts of decisions.
// Definitions come from the operator's file and from commands; limitsfile reads both kinds of file. A
// Registry is safe for concurrent use; a lookup takes no lock.
package namedlimit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// The bounds of a Registry:
const (
	MaxNames     = 1024
	MaxNameBytes = 64
	MaxWindows   = limiter.MaxWindows // of one limit
)

// Window is one of a limit's funnels.
type Window struct {
	Capacity  int64
	Count     int64 // of units that leak in a period
	PeriodSec int64
}

// NewWindow returns the window for CL.THROTTLE's arguments. The error is one of funnel.NewLimit.
func NewWindow(reading funnel.Reading, maxBurst, count, periodSec int64) (Window, error) {
	l, err := funnel.NewLimit(reading, maxBurst, count, periodSec)
	return Window{Capacity: l.Capacity(), Count: count, PeriodSec: periodSec}, err
}

// MaxBurst is what stands for the capacity in a command. It is -1 where the capacity is 0.
func (w Window) MaxBurst(reading funnel.Reading) int64 {
	if reading == funnel.Burst {
		return w.Capacity - 1
	}
	return w.Capacity
}

// rule is the window as package limiter has it.
func (w Window) rule() (limiter.Window, error) {
	l, err := funnel.NewLimit(funnel.Capacity, w.Capacity, w.Count, w.PeriodSec)
	return limiter.Window{Funnel: l, PeriodNs: w.PeriodSec * int64(time.Second)}, err
}

// Definition is what a limit is. Nobody changes the windows.
type Definition struct {
	Name    string
	Windows []Window
	Shadow  bool // it decides and counts, and never denies
}

// Equal reports whether two definitions are the same.
func (d *Definition) Equal(other *Definition) bool {
	return d.Name == other.Name && d.Shadow == other.Shadow && slices.Equal(d.Windows, other.Windows)
}

// CheckName says what is wrong with a limit's name.
func CheckName(name []byte) error {
	valid := len(name) > 0 && len(name) <= MaxNameBytes
	for _, c := range name {
		valid = valid && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-')
	}
	if !valid {
		return errors.New("a limit's name must be 1 to " + strconv.Itoa(MaxNameBytes) + " letters, digits, dots, hyphens and underscores")
	}
	return nil
}

// Check says what is wrong with a definition.
func (d *Definition) Check() error {
	_, err := d.rules()
	return err
}

// rules checks the definition and returns its windows.
func (d *Definition) rules() ([]limiter.Window, error) {
	if err := CheckName([]byte(d.Name)); err != nil {
		return nil, err
	}
	if n := len(d.Windows); n < 1 || n > MaxWindows {
		return nil, fmt.Errorf("a limit must have 1 to %d windows, got %d", MaxWindows, n)
	}
	rules := make([]limiter.Window, len(d.Windows))
	for i, w := range d.Windows {
		if slices.ContainsFunc(d.Windows[:i], func(other Window) bool { return other.PeriodSec == w.PeriodSec }) {
			return nil, fmt.Errorf("two windows have the period %d; a window's state is known by its period, so give each another one", w.PeriodSec)
		}
		var err error
		if rules[i], err = w.rule(); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

// Source is who has defined a limit.
type Source uint8

// The sources:
const (
	ByCommand Source = iota
	ByFile
)

// String returns the source as CL.LIMIT GET says it.
func (s Source) String() string {
	if s == ByFile {
		return "file"
	}
	return "command"
}

// Limit is a limit that holds. It never changes but for what it counts.
type Limit struct {
	Definition
	Source Source
	named  limiter.NamedLimit // its counts are those of the name, until that is deleted
}

// Counts is what was decided by a limit, since its name was defined, or defined again after it was deleted.
type Counts struct {
	Allowed       uint64
	Limited       uint64
	ShadowLimited uint64 // would have been limited, but for Shadow
}

// Counts returns what was decided.
func (l *Limit) Counts() Counts {
	c := l.named.Counts
	return Counts{c.Allowed.Load(), c.Limited.Load(), c.ShadowLimited.Load()}
}

// Named is what requests of the limit are decided by.
func (l *Limit) Named() *limiter.NamedLimit { return &l.named }
