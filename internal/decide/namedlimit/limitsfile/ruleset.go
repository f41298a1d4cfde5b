package limitsfile

import (
	"slices"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter/calendar"
)

// ruleSet has some rules in order, and the sets with one more. Equal sets of a file are checked, and held,
// once.
type ruleSet struct {
	calendars *calendar.Set
	rules     []namedlimit.Rule
	next      map[namedlimit.Rule]*ruleSet
	wrong     error // of the last rule
	checked   bool
	err       error // of all rules together
}

func (s *ruleSet) with(r namedlimit.Rule) *ruleSet {
	if next := s.next[r]; next != nil {
		return next
	}
	next := &ruleSet{calendars: s.calendars, rules: append(slices.Clip(s.rules), r)}
	next.wrong = namedlimit.CheckRule(&r, s.calendars)
	if s.next == nil {
		s.next = map[namedlimit.Rule]*ruleSet{}
	}
	s.next[r] = next
	return next
}

func (s *ruleSet) check() error {
	if !s.checked {
		s.checked, s.err = true, (&namedlimit.Policy{Rules: s.rules}).Check(s.calendars)
	}
	return s.err
}
