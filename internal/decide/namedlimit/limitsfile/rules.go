package limitsfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/calendar"
)

// form has the fields of a rule. The zero form has its algorithm's fields.
type form struct {
	what     string // in an error
	required []string
	optional []string // nil for a window, which has no algorithm either
}

const (
	algorithms = "funnel, token_bucket, fixed_window, sliding_window, approximate_window and quota"
	roomFields = "max_burst or capacity" // one of two
)

func formOf(a namedlimit.Algorithm) form {
	f := form{what: "the " + a.String(), optional: []string{"name"}}
	r := namedlimit.Rule{Algorithm: a}
	for _, n := range r.Numbers() {
		f.required = append(f.required, n.Field)
	}
	switch a {
	case namedlimit.Funnel:
		f.required[0] = roomFields
	case namedlimit.Quota:
		f.required, f.optional = append(f.required, "every"), []string{"time_zone", "start", "epoch", "name"}
	default:
	}
	return f
}

func (f *form) has(field string) bool {
	if field == "algorithm" {
		return len(f.optional) > 0
	}
	if f.required[0] == roomFields && (field == "max_burst" || field == "capacity") {
		return true
	}
	return slices.Contains(f.required, field) || slices.Contains(f.optional, field)
}

// known names all fields.
func (f *form) known() string {
	if len(f.optional) == 0 {
		return enumerate(f.required)
	}
	return enumerate(slices.Concat([]string{"algorithm"}, f.required, f.optional))
}

func enumerate(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// readRule reads a rule, or a window, which is a funnel without a name.
func (p *fileReader) readRule(n *yaml.Node, f form) (r namedlimit.Rule, ok bool) {
	before := p.Count()
	if f.what == "" {
		if r.Algorithm, ok = p.readAlgorithm(n); !ok {
			return r, false
		}
		f = formOf(r.Algorithm)
	}
	v := p.collect(n, &f)
	if p.Count() > before {
		return r, false
	}
	if name := v["name"]; name != nil {
		r.Name = p.readRuleName(name)
	}
	if r.Algorithm == namedlimit.Funnel {
		p.readFunnel(n, v, &r)
		return r, p.Count() == before
	}
	for _, number := range r.Numbers() {
		if number.Field == "period" {
			*number.Value = p.readPeriod(v["period"])
		} else {
			*number.Value = p.readInt(v[number.Field], number.Field)
		}
	}
	if r.Algorithm == namedlimit.Quota {
		r.Calendar = p.readCalendar(v)
	}
	return r, p.Count() == before
}

// readRuleName reads a name, which CheckRule checks unless it is empty.
func (p *fileReader) readRuleName(n *yaml.Node) string {
	name, ok := p.readText(n, "name")
	if ok && name == "" {
		p.Fail(n, "name must not be empty; leave it out for none")
	}
	return name
}

func (p *fileReader) readAlgorithm(n *yaml.Node) (a namedlimit.Algorithm, ok bool) {
	if n.Kind != yaml.MappingNode {
		p.Fail(n, "a rule must be a mapping")
		return 0, false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != "algorithm" {
			continue
		}
		chosen := yamlfile.Resolve(n.Content[i+1])
		if a, ok = namedlimit.AlgorithmOf(chosen.Value); !ok {
			p.Fail(chosen, "unknown algorithm "+yamlfile.QuoteWord(chosen.Value)+"; there are "+algorithms)
		}
		return a, ok
	}
	p.Fail(n, "a rule must have algorithm; there are "+algorithms)
	return 0, false
}

// collect returns the fields of a rule, and refuses unknown and missing ones.
func (p *fileReader) collect(n *yaml.Node, f *form) map[string]*yaml.Node {
	before := p.Count()
	v := make(map[string]*yaml.Node, len(f.required)+1)
	p.Fields(n, f.what, func(key, value *yaml.Node) {
		if !f.has(key.Value) {
			p.unknown(key, f.known())
			return
		}
		v[key.Value] = value
	})
	burst, capacity := v["max_burst"] != nil, v["capacity"] != nil
	missing := func(field string) bool {
		return v[field] == nil && field != roomFields || field == roomFields && !burst && !capacity
	}
	switch {
	case p.Count() > before:
	case burst && capacity:
		p.Fail(n, f.what+" has max_burst or capacity, not both")
	case slices.ContainsFunc(f.required, missing):
		p.Fail(n, f.what+" must have "+enumerate(f.required))
	}
	return v
}

// readFunnel reads numbers of a funnel; the meaning of max_burst is the server's.
func (p *fileReader) readFunnel(n *yaml.Node, v map[string]*yaml.Node, r *namedlimit.Rule) {
	before := p.Count()
	reading, name := p.reading, "max_burst"
	if v["capacity"] != nil {
		reading, name = funnel.Capacity, "capacity"
	}
	room := p.readInt(v[name], name)
	r.Count, r.PeriodSec = p.readInt(v["count"], "count"), p.readPeriod(v["period"])
	if p.Count() > before {
		return
	}
	l, err := funnel.NewLimit(reading, room, r.Count, r.PeriodSec)
	if argument := (*funnel.ArgumentError)(nil); errors.As(err, &argument) && argument.Name == "max_burst" {
		argument.Name = name
	}
	if err != nil {
		p.Fail(n, err.Error())
	}
	r.Capacity = l.Capacity()
}

func (p *fileReader) readCalendar(v map[string]*yaml.Node) (s calendar.Spec) {
	every := v["every"]
	e, ok := calendar.EveryOf([]byte(every.Value))
	if !ok || every.Kind != yaml.ScalarNode || e.String() != every.Value {
		p.Fail(every, "every must be second, minute, hour, day, week, month or year, got "+yamlfile.QuoteWord(every.Value))
		return s
	}
	s.Every = e
	if n := v["time_zone"]; n != nil {
		if s.Zone, _ = p.readText(n, "time_zone"); yamlfile.Word(s.Zone) != s.Zone {
			p.Fail(n, "unknown time zone "+yamlfile.QuoteWord(s.Zone)+"; use an IANA name, such as Europe/Berlin")
		}
	}
	if n := v["start"]; n != nil {
		if text, ok := p.readText(n, "start"); ok {
			var err error
			if s.Start, err = calendar.ParseStart(e, []byte(text)); err != nil {
				_, shorter := calendar.ParseStart(e, []byte(yamlfile.Word(text)))
				p.Fail(n, cmp.Or(shorter, err).Error())
			}
		}
	}
	if n := v["epoch"]; n != nil {
		s.Epoch = p.readBool(n, "epoch")
	}
	return s.Normal()
}

// readWindows reads the first form of a limit's rules, which are funnels.
func (p *fileReader) readWindows(n *yaml.Node) []namedlimit.Rule {
	return p.readSet(n, "windows", form{"a window", []string{roomFields, "count", "period"}, nil})
}

func (p *fileReader) readRules(n *yaml.Node) []namedlimit.Rule { return p.readSet(n, "rules", form{}) }

func (p *fileReader) readSet(n *yaml.Node, what string, f form) []namedlimit.Rule {
	before := p.Count()
	set := &p.sets
	p.Items(n, what, func(item *yaml.Node) {
		r, ok := p.readRule(item, f)
		if !ok || len(set.rules) == namedlimit.MaxRules { // too many, as is reported below
			return
		}
		if set = set.with(r); set.wrong != nil {
			p.Fail(item, set.wrong.Error())
		}
	})
	if p.Count() > before {
		return nil
	}
	if got := len(n.Content); got < 1 || got > namedlimit.MaxRules {
		p.Fail(n, fmt.Sprintf("a limit must have 1 to %d %s, got %d", namedlimit.MaxRules, what, got))
	} else if sec, twice := samePeriod(set.rules); twice && what == "windows" {
		p.Fail(n, fmt.Sprintf("two windows have the period %d; the period identifies a window, so use different ones", sec))
	} else if err := set.check(); err != nil {
		p.Fail(n, err.Error())
	}
	return set.rules
}

// samePeriod returns a period that two rules have.
func samePeriod(rules []namedlimit.Rule) (sec int64, twice bool) {
	for i := range rules {
		for j := range i {
			if rules[i].PeriodSec == rules[j].PeriodSec {
				return rules[i].PeriodSec, true
			}
		}
	}
	return 0, false
}

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
