package store

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// SpentAt is a limit and a day, which is the number of days since 1970 of the limit's zone.
type SpentAt struct {
	Limit string
	Day   int32
}

// Spent is the units that were spent under a limit on a day: held, less those returned, and settled beyond,
// each as of the day on which its hold began, and debits.
type Spent struct {
	SpentAt
	Units int64
}

// SpentDays is how many days of a limit are kept: the newest with any spending.
const SpentDays = 31

// Spends are units by limit and day.
type Spends map[SpentAt]int64

func (s *Spends) Add(at SpentAt, units int64) {
	if *s == nil {
		*s = Spends{}
	}
	(*s)[at] = plus((*s)[at], units)
}

// Sorted returns all, by limit and day.
func (s Spends) Sorted() (all []Spent) {
	for at, units := range s {
		all = append(all, Spent{at, units})
	}
	slices.SortFunc(all, func(a, b Spent) int { return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Day, b.Day)) })
	return all
}

// plus saturates, as sums of times do.
func plus(a, b int64) int64 { return funnel.Shift(a, b) }

// Book has the units spent by limit and day, of which a store of its own reports changes. It is safe for
// concurrent use; the zero Book is empty.
type Book struct {
	// At returns the limit and the day of a time, and whether there is the limit; nil for days of UTC, and
	// any limit. It is set before use.
	At func(limit []byte, atNs int64) (at SpentAt, defined bool)

	mu      sync.Mutex // rank 90: guards all below
	limits  map[string]map[int32]int64
	changed map[SpentAt]struct{}
}

const dayNs = int64(24 * time.Hour)

// Enter adds what a step has spent on a key to what is pending, or if that is nil to the Book. It leaves out
// names that have no limit and never had spending, as keys that a client restores may have any.
func (b *Book) Enter(key []byte, n *limiter.Notes, pending *Spends) {
	limit, _, _ := bytes.Cut(key, []byte{':'})
	if len(limit) > mostHoldNameBytes {
		limit = nil
	}
	for of := range n.Spent {
		switch at, defined := b.at(limit, of.AtNs); {
		case !defined && !b.has(at.Limit):
		case pending != nil:
			pending.Add(at, of.Units)
		default:
			b.Add(at, of.Units)
		}
	}
}

func (b *Book) at(limit []byte, atNs int64) (at SpentAt, defined bool) {
	if b.At != nil {
		return b.At(limit, atNs)
	}
	return SpentAt{string(limit), int32(atNs / dayNs)}, true
}

func (b *Book) has(limit string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits[limit] != nil
}

// Add adds units.
func (b *Book) Add(at SpentAt, units int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if days := b.daysLocked(at); days != nil {
		days[at.Day] = plus(days[at.Day], units)
	}
}

// Restore sets what was reported.
func (b *Book) Restore(s Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if days := b.daysLocked(s.SpentAt); days != nil {
		days[s.Day] = s.Units
	}
}

// Replace takes all of another Book, which is not used any more, and nothing else.
func (b *Book) Replace(by *Book) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limits, b.changed = by.limits, by.changed
	by.limits, by.changed = nil, nil
}

// daysLocked returns the days of a limit among which one is about to change, or nil if it is too old.
func (b *Book) daysLocked(at SpentAt) map[int32]int64 {
	days := b.limits[at.Limit]
	if days == nil {
		if b.limits == nil {
			b.limits, b.changed = map[string]map[int32]int64{}, map[SpentAt]struct{}{}
		}
		if len(b.limits) >= mostHoldNames && !b.forgetLocked(at.Day) {
			return nil
		}
		days = map[int32]int64{}
		b.limits[at.Limit] = days
	}
	if _, there := days[at.Day]; !there && len(days) >= SpentDays {
		oldest := slices.Min(slices.Collect(maps.Keys(days)))
		if oldest > at.Day {
			return nil
		}
		delete(days, oldest)
		delete(b.changed, SpentAt{at.Limit, oldest})
	}
	b.changed[at] = struct{}{}
	return days
}

// forgetLocked makes room for a limit that spends on a day: the one forgotten has not spent for the longest
// time. It fails if all have spent later.
func (b *Book) forgetLocked(day int32) bool {
	idle, last := "", day
	for limit, days := range b.limits {
		newest := slices.Max(slices.Collect(maps.Keys(days)))
		if newest < last || newest == last && idle != "" && limit < idle {
			idle, last = limit, newest
		}
	}
	if last == day {
		return false
	}
	for day := range b.limits[idle] {
		delete(b.changed, SpentAt{idle, day})
	}
	delete(b.limits, idle)
	return true
}

// Changed returns what has changed since the last call.
func (b *Book) Changed() []Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all Spends
	for at := range b.changed {
		all.Add(at, b.limits[at.Limit][at.Day])
	}
	clear(b.changed)
	return all.Sorted()
}

// Of returns the units of a limit by day, or of all limits if it is empty.
func (b *Book) Of(limit string) Spends {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := Spends{}
	add := func(limit string, days map[int32]int64) {
		for day, units := range days {
			all[SpentAt{limit, day}] = units
		}
	}
	if limit != "" {
		add(limit, b.limits[limit])
		return all
	}
	for limit, days := range b.limits {
		add(limit, days)
	}
	return all
}
