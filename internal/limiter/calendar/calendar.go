// Package calendar has the windows of quotas that follow the calendar: days, weeks, months and years of a
// time zone, with daylight saving time. A Spec is a value; Wall, Calendar and Set are safe for concurrent use
// and lock-free. Time is an argument, in Unix nanoseconds.
package calendar

import (
	"errors"
	"strconv"
)

// Every is the length of windows.
type Every uint8

const (
	Second Every = iota
	Minute
	Hour
	Day
	Week
	Month
	Year
	Everies // their number
)

func everyNames() [Everies]string {
	return [...]string{"second", "minute", "hour", "day", "week", "month", "year"}
}

func (e Every) String() string {
	if e >= Everies {
		return "Every(" + strconv.Itoa(int(e)) + ")"
	}
	return everyNames()[e]
}

// EveryOf returns the unit of a word in any case.
func EveryOf(word []byte) (Every, bool) {
	for e, name := range everyNames() {
		if equalFold(word, name) {
			return Every(e), true
		}
	}
	return 0, false
}

// FixedSec returns the unit's length, with months of 30 days and years of 365.
func (e Every) FixedSec() int64 {
	const day = secPerDay
	return [...]int64{1, secPerMin, secPerHour, day, 7 * day, 30 * day, 365 * day}[e]
}

// equalFold reports whether a word is a lower-case name but for its ASCII case.
func equalFold(word []byte, name string) bool {
	if len(word) != len(name) {
		return false
	}
	for i, b := range word {
		if b|0x20 != name[i] {
			return false
		}
	}
	return true
}

// Spec describes windows. The zero Spec is seconds of UTC.
type Spec struct {
	Every Every
	Epoch bool   // windows begin at multiples of a fixed length since 1970, as envoyproxy/ratelimit's do
	Zone  string // IANA name; "" is UTC
	Start Start
}

const utc = "UTC"

// Normal returns the Spec that all equal ones share: "" instead of "UTC".
func (s Spec) Normal() Spec {
	if s.Zone == utc {
		s.Zone = ""
	}
	return s
}

// Options returns the options of a command that tell the windows from those of the same unit in UTC.
func (s Spec) Options() (words []string) {
	if s.Zone != "" {
		words = append(words, "TZ", s.Zone)
	}
	if start := s.Start.Text(s.Every); start != "" {
		words = append(words, "START", start)
	}
	if s.Epoch {
		words = append(words, "EPOCH")
	}
	return words
}

// Check returns an error for a Spec that has no windows. It does not look up the zone.
func (s Spec) Check() error {
	s = s.Normal()
	switch {
	case s.Every >= Everies:
		return errors.New("unknown window; use SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR")
	case s.Epoch && s.Zone != "":
		return errors.New("windows since the epoch have no time zone; leave out one of the two")
	case s.Epoch && s.Start != 0:
		return errors.New("windows since the epoch have no start; leave out one of the two")
	case s.Every < Day && s.Zone != "":
		return errors.New("a time zone requires windows of a day or longer; use DAY, WEEK, MONTH or YEAR, or leave out the zone")
	case s.Every < Day && s.Start != 0:
		return noStart()
	case !s.Start.valid(s.Every):
		return errors.New("the start is not in a " + s.Every.String())
	}
	return nil
}
