// Package namedlimit holds the named limits: definitions, their origins, overrides for some keys, and counts
// of decisions. Definitions come from the operator's file and from commands; limitsfile reads both. A
// Registry is safe for concurrent use; a lookup takes no lock.
package namedlimit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// Bounds of a Registry:
const (
	MaxNames     = 1024
	MaxNameBytes = 64
	MaxRules     = limiter.MaxRules // of one limit
	MaxOverrides = 100_000          // exact keys of a file; and as many by commands
	MaxPatterns  = 128              // of one limit
	MaxPlans     = 1024
)

// DefaultNear is the share of a rule's capacity from which on a key is near the limit.
const DefaultNear = 0.8

// Policy decides the requests of keys: by all its rules, or constantly.
type Policy struct {
	Plan     string // whose rules these are; "" for none
	Rules    []Rule
	Constant limiter.Constant
}

// Override is another policy for some keys of a limit.
type Override struct {
	Keys    []string
	Pattern string // a glob, if there are no keys
	Policy
}

// Definition defines a limit. Its slices must not be changed.
type Definition struct {
	Name string
	Policy
	Overrides []Override
	Shadow    bool    // decides and counts without denying
	Near      float64 // share of a rule's capacity, above 0 and at most 1

	Unit           string  // of its integers: USD, or "" for none
	MaxReservation float64 // share of the smallest capacity that a hold may have; 0 for no bound
}

// Definitions are the limits and plans of a file.
type Definitions struct {
	Limits map[string]Definition
	Plans  map[string][]Rule
}

func (d *Definition) Equal(other *Definition) bool { return reflect.DeepEqual(d, other) }

// CheckName returns an error for an invalid name of a limit.
func CheckName(name []byte) error { return checkName("a limit", name) }

func checkName(of string, name []byte) error {
	valid := len(name) > 0 && len(name) <= MaxNameBytes
	for _, c := range name {
		valid = valid && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-')
	}
	if !valid {
		return errors.New(of + "'s name must be 1 to " + strconv.Itoa(MaxNameBytes) + " letters, digits, dots, hyphens and underscores")
	}
	return nil
}

func (d *Definition) Check(calendars *calendar.Set) error {
	if err := CheckName([]byte(d.Name)); err != nil {
		return err
	}
	if err := d.checkOptions(); err != nil {
		return err
	}
	if err := d.Policy.Check(calendars); err != nil {
		return err
	}
	for i := range d.Overrides {
		if err := d.Overrides[i].Check(calendars); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) Check(calendars *calendar.Set) error {
	if p.Constant != limiter.ByRules {
		return nil
	}
	_, err := p.build(calendars)
	return err
}

// build checks the rules and returns those to decide by.
func (p *Policy) build(calendars *calendar.Set) ([]limiter.NamedRule, error) {
	if n := len(p.Rules); n < 1 || n > MaxRules {
		return nil, fmt.Errorf("a limit must have 1 to %d rules, got %d", MaxRules, n)
	}
	rules, exact := make([]limiter.NamedRule, 0, len(p.Rules)), 0
	for i := range p.Rules {
		of := &p.Rules[i]
		r, err := of.build(calendars)
		if err != nil {
			return nil, err
		}
		if of.Name != "" && slices.ContainsFunc(p.Rules[:i], func(other Rule) bool { return other.Name == of.Name }) {
			return nil, fmt.Errorf("two rules have the name %s; give one of them another", of.Name)
		}
		if slices.ContainsFunc(rules, func(other limiter.NamedRule) bool { return other.ID == r.ID }) {
			return nil, fmt.Errorf("two rules are '%s', by which their state is known; give one of them a name", of.Label())
		}
		if rules = append(rules, r); of.Algorithm == SlidingWindow {
			exact++
		}
	}
	if exact > maxExact {
		return nil, fmt.Errorf("a limit must have at most %d rules of the algorithm %s, got %d; use %s", maxExact, SlidingWindow, exact, ApproximateWindow)
	}
	return rules, nil
}

// maxExact is the number of exact windows whose records fit in a key.
const maxExact = 7

type Source uint8

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
