// Package namedlimit holds the named limits: definitions, their origins, and counts of decisions. Definitions
// come from the operator's file and from commands; limitsfile reads both. A Registry is safe for concurrent
// use; a lookup takes no lock.
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

// Bounds of a Registry:
const (
	MaxNames     = 1024
	MaxNameBytes = 64
	MaxWindows   = limiter.MaxWindows // of one limit
)

// Window is a limit's funnel.
type Window struct {
	Capacity  int64
	Count     int64 // units that leak in a period
	PeriodSec int64
}

// NewWindow returns the window for CL.THROTTLE's arguments, or funnel.NewLimit's error.
func NewWindow(reading funnel.Reading, maxBurst, count, periodSec int64) (Window, error) {
	l, err := funnel.NewLimit(reading, maxBurst, count, periodSec)
	return Window{Capacity: l.Capacity(), Count: count, PeriodSec: periodSec}, err
}

// MaxBurst returns the command argument for the capacity, -1 for capacity 0.
func (w Window) MaxBurst(reading funnel.Reading) int64 {
	if reading == funnel.Burst {
		return w.Capacity - 1
	}
	return w.Capacity
}

// Definition defines a limit. Windows must not be changed.
type Definition struct {
	Name    string
	Windows []Window
	Shadow  bool // decides and counts without denying
}

func (d *Definition) Equal(other *Definition) bool {
	return d.Name == other.Name && d.Shadow == other.Shadow && slices.Equal(d.Windows, other.Windows)
}

// CheckName returns an error for an invalid name.
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

// Check returns an error for an invalid definition.
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
			return nil, fmt.Errorf("two windows have the period %d; the period identifies a window, so use different ones", w.PeriodSec)
		}
		l, err := funnel.NewLimit(funnel.Capacity, w.Capacity, w.Count, w.PeriodSec)
		if err != nil {
			return nil, err
		}
		rules[i] = limiter.Window{Funnel: l, PeriodNs: w.PeriodSec * int64(time.Second)}
	}
	return rules, nil
}

// Source is a limit's origin.
type Source uint8

// Sources:
const (
	ByCommand Source = iota
	ByFile
)

// String returns the source for CL.LIMIT GET.
func (s Source) String() string {
	if s == ByFile {
		return "file"
	}
	return "command"
}

// Limit is a limit in force, immutable but for its counts.
type Limit struct {
	Definition
	Source Source
	named  limiter.NamedLimit // the counts belong to the name until its deletion
}

// Counts counts a limit's decisions since its name was defined.
type Counts struct {
	Allowed       uint64
	Limited       uint64
	ShadowLimited uint64 // requests that a Shadow would deny
}

func (l *Limit) Counts() Counts {
	c := l.named.Counts
	return Counts{c.Allowed.Load(), c.Limited.Load(), c.ShadowLimited.Load()}
}

// Named decides the limit's requests.
func (l *Limit) Named() *limiter.NamedLimit { return &l.named }
