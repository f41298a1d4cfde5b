package limitsfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/nearest"
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
	f := form{what: "the " + a.String(), optional: []string{"name", "block", "block_on"}}
	r := namedlimit.Rule{Algorithm: a}
	for _, n := range r.Numbers() {
		f.required = append(f.required, n.Field)
	}
	switch a {
	case namedlimit.Funnel:
		f.required[0] = roomFields
	case namedlimit.Quota:
		f.required, f.optional = append(f.required, "every"), []string{"time_zone", "start", "epoch", "name", "block", "block_on"}
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

// fields are those of a rule, by name.
type fields struct {
	keys  []*yaml.Node
	value map[string]*yaml.Node
}

// readRule reads a rule, or a window, which is a funnel without a name. It reads all that it can, for its
// errors.
func (p *fileReader) readRule(n *yaml.Node, f form) (r namedlimit.Rule, ok bool) {
	before := p.Count()
	all := fields{value: make(map[string]*yaml.Node, len(n.Content)/2)}
	p.Fields(n, cmp.Or(f.what, "a rule"), func(key, value *yaml.Node) {
		all.keys, all.value[key.Value] = append(all.keys, key), value
	})
	if n.Kind != yaml.MappingNode {
		return r, false
	}
	if f.what == "" {
		if r.Algorithm, ok = p.readAlgorithm(n, &all); !ok {
			return r, false
		}
		f = formOf(r.Algorithm)
	}
	v := p.known(n, &f, &all)
	if name := v["name"]; name != nil {
		r.Name = p.readRuleName(name)
	}
	p.readBlock(v, &r)
	if r.Algorithm == namedlimit.Funnel {
		p.readFunnel(n, v, &r, before)
		return r, p.Count() == before
	}
	for _, number := range r.Numbers() {
		*number.Value = p.readNumber(v, number.Field)
	}
	if r.Algorithm == namedlimit.Quota && v["every"] != nil {
		r.Calendar = p.readCalendar(v)
	}
	if p.Count() == before {
		p.checkRate(v, &r)
	}
	return r, p.Count() == before
}

// readNumber reads one of a rule's numbers, 0 without it.
func (p *fileReader) readNumber(v map[string]*yaml.Node, field string) int64 {
	switch n := v[field]; {
	case n == nil:
		return 0
	case field == "period":
		return p.readPeriod(n, field)
	default:
		return p.readInt(n, field)
	}
}

// readBlock reads for how long a rule shuts out whoever exceeds it.
func (p *fileReader) readBlock(v map[string]*yaml.Node, r *namedlimit.Rule) {
	sec, on := v["block"], v["block_on"]
	if sec != nil {
		before := p.Count()
		if r.BlockSec = p.readPeriod(sec, "block"); p.Count() == before {
			if err := namedlimit.CheckBlock(r.BlockSec); err != nil {
				p.Fail(sec, err.Error())
			}
		}
	}
	switch {
	case on == nil:
	case sec == nil:
		p.Fail(on, "block_on needs block, the time for which the rule shuts out, such as 15m")
	case on.Kind != yaml.ScalarNode || on.Value != "first" && on.Value != "each":
		p.Fail(on, "block_on must be first, for one time from the denial that begins it, or each, for that time anew with every denial, got "+yamlfile.QuoteWord(on.Value))
	default:
		r.BlockEach = on.Value == "each"
	}
}

// readRuleName reads a name, which CheckRule checks unless it is empty.
func (p *fileReader) readRuleName(n *yaml.Node) string {
	name, ok := p.readText(n, "name")
	if ok && name == "" {
		p.Fail(n, "name must not be empty; leave it out for none")
	}
	return name
}

func (p *fileReader) readAlgorithm(n *yaml.Node, all *fields) (a namedlimit.Algorithm, ok bool) {
	if chosen := all.value["algorithm"]; chosen != nil {
		if a, ok = namedlimit.AlgorithmOf(chosen.Value); !ok {
			p.Fail(chosen, "unknown algorithm "+yamlfile.QuoteWord(chosen.Value)+thereAre(chosen.Value, algorithms))
		}
		return a, ok
	}
	for _, key := range all.keys {
		if nearest.Word(key.Value, []string{"algorithm"}) != "" {
			p.Fail(key, "unknown field "+yamlfile.QuoteWord(key.Value)+"; did you mean algorithm?")
			return 0, false
		}
	}
	p.Fail(n, "a rule must have algorithm; there are "+algorithms)
	return 0, false
}

// known returns a rule's fields, and refuses unknown and missing ones.
func (p *fileReader) known(n *yaml.Node, f *form, all *fields) map[string]*yaml.Node {
	known, misspelt := make(map[string]*yaml.Node, len(f.required)+1), false
	for _, key := range all.keys {
		if f.has(key.Value) {
			known[key.Value] = all.value[key.Value]
		} else {
			p.unknown(key, f.known())
			misspelt = true
		}
	}
	burst, capacity := known["max_burst"] != nil, known["capacity"] != nil
	missing := func(field string) bool {
		return known[field] == nil && field != roomFields || field == roomFields && !burst && !capacity
	}
	switch {
	case burst && capacity:
		p.Fail(n, f.what+" has max_burst or capacity, not both")
	case !misspelt && slices.ContainsFunc(f.required, missing): // else the unknown field may be the missing one
		p.Fail(n, f.what+" must have "+enumerate(f.required))
	}
	return known
}

// readFunnel reads numbers of a funnel; the meaning of max_burst is the server's.
func (p *fileReader) readFunnel(n *yaml.Node, v map[string]*yaml.Node, r *namedlimit.Rule, before int) {
	reading, name := p.reading, "max_burst"
	if v["capacity"] != nil {
		reading, name = funnel.Capacity, "capacity"
	}
	room := p.readNumber(v, name)
	r.Count, r.PeriodSec = p.readNumber(v, "count"), p.readNumber(v, "period")
	if p.Count() > before || !p.checkRate(v, r) {
		return
	}
	l, err := funnel.NewLimit(reading, room, r.Count, r.PeriodSec)
	if argument := (*funnel.ArgumentError)(nil); errors.As(err, &argument) && argument.Name == "max_burst" {
		argument.Name = name
		p.Fail(v[name], err.Error())
	} else if err != nil {
		p.Fail(n, err.Error())
	}
	r.Capacity = l.Capacity()
}

// checkRate refuses a rate by which no unit, or any number at once, would be allowed.
func (p *fileReader) checkRate(v map[string]*yaml.Node, r *namedlimit.Rule) bool {
	wrong := r.WrongRate()
	if wrong == nil {
		return true
	}
	p.Fail(v[wrong.Field], wrong.Error())
	return false
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
	lines := map[string]int{} // of the rules, by identity: metrics, too, know a named one by its name alone
	p.Items(n, what, func(item *yaml.Node) {
		r, ok := p.readRule(item, f)
		if !ok || len(set.rules) == namedlimit.MaxRules { // too many, as is reported below
			return
		}
		if set = set.with(r); set.wrong != nil {
			p.Fail(item, set.wrong.Error())
			return
		}
		known := r.Identity()
		if line, twice := lines[known]; twice {
			if len(n.Content) <= namedlimit.MaxRules {
				p.Fail(item, sameRule(what, &r, line))
			}
			return
		}
		lines[known] = item.Line
	})
	if got := len(n.Content); n.Kind == yaml.SequenceNode && (got < 1 || got > namedlimit.MaxRules) {
		p.Fail(n, fmt.Sprintf("a limit must have 1 to %d %s, got %d", namedlimit.MaxRules, what, got))
	}
	if p.Count() > before {
		return nil
	}
	if err := set.check(); err != nil {
		p.Fail(n, err.Error())
	}
	return set.rules
}

// sameRule says that a rule is known by the same as the one in a line.
func sameRule(what string, r *namedlimit.Rule, line int) string {
	if what == "windows" {
		return fmt.Sprintf("the window in line %d has the period %d, too; the period identifies a window, so use different ones", line, r.PeriodSec)
	}
	if r.Name != "" {
		return fmt.Sprintf("the rule in line %d has the name %s, too; give one of them another", line, r.Name)
	}
	return fmt.Sprintf("the rule in line %d is '%s', too, by which their state is known; give one of them a name", line, r.Label())
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
