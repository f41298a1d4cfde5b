package limits

import (
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
)

// limit is a limit of the output.
type limit struct {
	domain    string
	keys      []string
	name      string
	base      action
	overrides []override
	shadow    bool
	at        at // of its first descriptor
}

// override applies an action to exact keys or to a pattern.
type override struct {
	keys    []string
	pattern string
	do      action
}

// action is a field of the output: rules, deny or unlimited.
type action string

const (
	unlimited action = "unlimited: true"
	deny      action = "deny: true"
)

// translate adds the limits of a domain.
func (t *translator) translate(d *envoyconfig.Domain) {
	if d.AllOrNothing {
		t.note(d.TogetherAt, "all_or_nothing is not translated: check the descriptors of a request by one CL.MCHECK without EACH")
	}
	t.untranslated(&d.Top)
	named := map[string][]*descriptor{}
	byName(&d.Top, named)
	prune(&d.Top)
	t.index.add(&d.Top)
	t.confusions(&d.Top)
	of := map[*descriptor]*limit{}
	for _, p := range paths(&d.Top) {
		l := &limit{domain: d.Name, keys: p.keys, at: p.at, name: t.name(d.Name, p.keys)}
		choices := t.choices(&d.Top, p.keys, nil, false, nil)
		if t.overrides += len(choices); t.overrides > maxOverrides {
			t.fail(d.At, "more than "+strconv.Itoa(maxOverrides)+" overrides; split the configuration")
			return
		}
		t.fill(l, choices, of)
		t.limits = append(t.limits, l)
	}
	t.replacements(&d.Top, named, of)
}

// path is a sequence of descriptor keys.
type path struct {
	keys []string
	at   at
}

// paths returns, in the order of the files, the sequences of keys that end in a limit or in nothing further,
// which permits all requests.
func paths(l *level) (found []path) {
	seen := map[string]bool{}
	var visit func(l *level, keys []string)
	visit = func(l *level, keys []string) {
		for _, d := range l.All {
			keys := append(slices.Clip(keys), d.Key)
			id := joined(keys)
			if !seen[id] && (d.Rate != nil || len(d.Below.All) == 0) {
				seen[id] = true
				found = append(found, path{keys, d.At})
			}
			visit(&d.Below, keys)
		}
	}
	visit(l, nil)
	return found
}

// joined returns a text that differs for different sequences.
func joined(keys []string) string {
	b := []byte(nil)
	for _, key := range keys {
		b = strconv.AppendQuote(b, key)
	}
	return string(b)
}

// fill sets a limit's actions.
func (t *translator) fill(l *limit, choices []choice, of map[*descriptor]*limit) {
	l.base, l.shadow = unlimited, shadowed(choices)
	positions, patterns := map[action]int{}, map[string]at{}
	for _, c := range choices {
		line, pattern := l.at, l.pattern(c.values)
		if c.of != nil {
			of[c.of], line = l, c.of.At
		}
		first, found := patterns[l.all()]
		if !found {
			first, found = patterns[pattern]
		}
		if found {
			t.unreachable(c.of, first)
			continue
		}
		patterns[pattern] = line
		do := t.action(l, c.of)
		switch position, known := positions[do]; {
		case pattern == l.all() && do == deny: // a limit has rules or none
			l.overrides = append(l.overrides, override{pattern: "*", do: deny})
		case pattern == l.all():
			l.base = do
		case !c.exact:
			l.overrides = append(l.overrides, override{pattern: pattern, do: do})
		case known:
			l.overrides[position].keys = append(l.overrides[position].keys, l.key(c.values))
		default:
			positions[do] = len(l.overrides)
			l.overrides = append(l.overrides, override{keys: []string{l.key(c.values)}, do: do})
		}
	}
}

// unreachable notes a descriptor that is never chosen.
func (t *translator) unreachable(d *descriptor, first at) {
	if d != nil {
		t.note(d.At, "this descriptor is left out: all of its values are those of "+first.String()+
			" there, too; remove one of them")
	}
}

// shadowed reports whether all choices that limit do so in shadow mode.
func shadowed(choices []choice) (all bool) {
	for _, c := range choices {
		if limits(c.of) {
			if !c.of.Shadow {
				return false
			}
			all = true
		}
	}
	return all
}

func limits(d *descriptor) bool { return d != nil && d.Rate != nil && !d.Rate.Unlimited }

// action returns what a limit does for a descriptor.
func (t *translator) action(l *limit, d *descriptor) action {
	if d == nil || d.Rate == nil {
		return unlimited
	}
	do, name, why := unlimited, d.Rate.Name, "only rules have names here, and it has none"
	switch {
	case d.Rate.Unlimited:
	case d.Shadow && !l.shadow:
		t.note(d.FieldAt("shadow_mode"), "shadow_mode is translated for whole limits only, and not all of "+l.name+
			" has it: these requests are allowed, but not counted; give them another key, or remove it")
	case d.Rate.Count == 0:
		do = deny
	case namedlimit.CheckName([]byte(name)) == nil:
		return ruleOf(d.Rate, ", name: "+scalar(name))
	default:
		do, why = ruleOf(d.Rate, ""), "names here are up to 64 letters, digits, dots, hyphens and underscores"
	}
	if name != "" {
		t.note(d.Rate.NameAt, "name "+yamlfile.Quote(name)+" is not translated: "+why+"; leave it out")
	}
	return do
}

// ruleOf returns a rule like the service's: a quota by the calendar, or the algorithm of the rate limit.
func ruleOf(r *envoyconfig.Rate, name string) action {
	count, period := strconv.FormatUint(uint64(r.Count), 10), ", period: "+strconv.FormatInt(envoyconfig.UnitSec(r.Unit), 10)
	rule := "max_count: " + count + period
	switch r.Algorithm {
	case namedlimit.Quota:
		rule = "epoch: true, max_count: " + count + ", every: " + r.Unit
	case namedlimit.Funnel:
		rule = "capacity: " + count + ", count: " + count + period
	case namedlimit.TokenBucket:
		rule = "capacity: " + count + ", refill: " + count + period
	default:
	}
	return action("rules: [{algorithm: " + r.Algorithm.String() + ", " + rule + name + "}]")
}

// replacements notes what rate limits replace.
func (t *translator) replacements(
	l *level, named map[string][]*descriptor, of map[*descriptor]*limit,
) {
	for _, d := range l.All {
		if d.Rate != nil {
			for _, entry := range d.Rate.Replaces {
				text := " is not translated: " + advice(named[entry.Name], of)
				t.note(entry.At, "replaces "+yamlfile.Quote(entry.Name)+text)
			}
		}
		t.replacements(&d.Below, named, of)
	}
}

// advice says how a caller replaces rate limits.
func advice(replaced []*descriptor, of map[*descriptor]*limit) string {
	var where []string
	for _, d := range replaced {
		if l := of[d]; l != nil {
			where = append(where, l.name+" ("+d.At.String()+")")
		}
	}
	if len(where) == 0 {
		return "no rate limit of the domain has this name; remove it"
	}
	return "a caller of both checks must leave out that of " + strings.Join(where, ", ")
}
