package namedlimit

import (
	"cmp"
	"slices"
	"time"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/store"
)

// Spending is what was spent under a limit, as clients are told of it: held and not returned, settled beyond,
// and debited.
type Spending struct {
	Zone     string    `json:"spent_zone"`
	Days     []Day     `json:"spent_by_day"` // with any spending, the newest last
	SinceNs  int64     `json:"-"`            // of Spenders; 0 before the first settlement
	Since    string    `json:"spenders_since,omitempty"`
	Spenders []Spender `json:"spenders"` // by settlements that this server has made, the most first
}

// Day is a day in the zone of a limit's first quota, else of UTC.
type Day struct {
	Date  string `json:"day"`
	Units int64  `json:"units"`
}

// Spender is a key that has spent much.
type Spender struct {
	DB    uint16 `json:"db"`
	Key   string `json:"key"` // without the limit's name
	Units int64  `json:"units"`
	Error int64  `json:"error"`         // most by which Units are too high
	Cut   bool   `json:"cut,omitempty"` // Key is the beginning of a longer one, and a mark
}

// DateOf formats a day, the number of days since 1970.
func DateOf(day int32) string {
	return time.Unix(int64(day)*24*3600, 0).UTC().Format(time.DateOnly)
}

// Now returns the time by which overrides end, and days.
func (r *Registry) Now() int64 { return r.config.Now() }

// SpentAt returns the limit of a name, if it is defined, and the day of a time: of its first quota's zone,
// else of UTC.
func (r *Registry) SpentAt(name []byte, atNs int64) (at store.SpentAt, defined bool) {
	l := r.Lookup(name)
	if l == nil {
		return store.SpentAt{Limit: string(name), Day: r.utc.Day(atNs)}, false
	}
	return store.SpentAt{Limit: l.Name, Day: l.days.Day(atNs)}, true
}

// Today returns the limit's day of a time.
func (l *Limit) Today(nowNs int64) int32 { return l.days.Day(nowNs) }

// DaysZone returns the time zone of the limit's days.
func (l *Limit) DaysZone() string { return cmp.Or(l.days.Spec().Zone, "UTC") }

// MaxHold returns what a hold gets at most by the limit's own rules, 0 for no bound.
func (l *Limit) MaxHold() int64 { return l.own.MaxHold }

// Spenders returns the keys that have spent most by settlements, and are counted until the limit is deleted.
func (l *Limit) Spenders() *topkeys.Spenders { return l.spenders }

// SpendingOf describes what was spent under a limit. It leaves out keys that may not be told.
func (r *Registry) SpendingOf(l *Limit, tells func(key []byte) bool) Spending {
	s := Spending{Zone: l.DaysZone(), Days: []Day{}, Spenders: []Spender{}}
	if r.config.Spent != nil {
		for at, units := range r.config.Spent(l.Name) {
			s.Days = append(s.Days, Day{DateOf(at.Day), units})
		}
	}
	slices.SortFunc(s.Days, func(a, b Day) int { return cmp.Compare(a.Date, b.Date) })
	top, sinceNs := l.spenders.Top()
	if s.SinceNs = sinceNs; sinceNs != 0 {
		s.Since = time.Unix(0, sinceNs).UTC().Format(time.RFC3339)
	}
	for _, of := range top {
		if tells([]byte(of.Name)) {
			s.Spenders = append(s.Spenders, Spender{of.DB, of.Name[len(l.Name)+1:], of.Units, of.Error, of.Cut})
		}
	}
	return s
}
