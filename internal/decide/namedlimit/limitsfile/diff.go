package limitsfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Change is a difference of definitions in one line, such as
//
//	rule funnel 60: FUNNEL 99 100 60 -> FUNNEL 199 200 60
type Change struct {
	Limit string // "" for plans
	Key   string // "" for the limit itself, or a pattern
	Text  string
}

// Diff returns what would change if to replaced from, sorted by limit, key and text. Rules are written as a
// command takes them by a reading. Overrides by a plan are not listed if only the plan changes.
func Diff(from, to namedlimit.Definitions, reading funnel.Reading) []Change {
	d := differ{reading: reading}
	d.plans(from.Plans, to.Plans)
	inName := func(name string) string {
		d.limit = name
		return ""
	}
	compare(&d, from.Limits, to.Limits, inName, d.summary, func(_ string, before, after namedlimit.Definition) { d.limits(&before, &after) })
	slices.SortFunc(d.changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), strings.Compare(a.Key, b.Key), strings.Compare(a.Text, b.Text))
	})
	return d.changes
}

// compare adds what is only in one of two maps, after the beginning of its line, and calls both for the rest.
func compare[V any](d *differ, before, after map[string]V, what func(name string) string, text func(V) string, both func(name string, was, is V)) {
	all := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		was, known := before[name]
		is, stays := after[name]
		switch begin := what(name); {
		case !known:
			d.add(begin + "added: " + text(is))
		case !stays:
			d.add(begin + "removed: " + text(was))
		default:
			both(name, was, is)
		}
	}
}

type differ struct {
	reading funnel.Reading
	limit   string
	changes []Change
}

func (d *differ) add(text string) { d.changes = append(d.changes, Change{Limit: d.limit, Text: text}) }

func (d *differ) replaced(what, before, after string) { d.add(what + ": " + before + " -> " + after) }

func (d *differ) summary(l namedlimit.Definition) string {
	text := d.words(&l.Policy)
	if l.Shadow {
		text += ", shadow"
	}
	if l.Unit != "" {
		text += ", in " + l.Unit
	}
	if l.MaxReservation != 0 {
		text += ", max_reservation " + namedlimit.ShareText(l.MaxReservation)
	}
	keys := 0
	for _, o := range l.Overrides {
		keys += max(len(o.Keys), 1)
	}
	switch keys {
	case 0:
	case 1:
		text += ", 1 override"
	default:
		text += fmt.Sprintf(", %d overrides", keys)
	}
	return text
}

// words returns a policy as a command takes it, with the names of rules.
func (d *differ) words(p *namedlimit.Policy) string {
	if p.Constant != limiter.ByRules || p.Plan != "" {
		return strings.Join(p.Words(d.reading), " ")
	}
	return d.ruleWords(p.Rules)
}

func (d *differ) ruleWords(rules []namedlimit.Rule) string {
	words := make([]string, len(rules))
	for i := range rules {
		words[i] = strings.Join(rules[i].Words(d.reading), " ")
		if name := rules[i].Name; name != "" {
			words[i] += " (" + name + ")"
		}
	}
	return strings.Join(words, " ")
}

func (d *differ) plans(before, after map[string][]namedlimit.Rule) {
	what := func(name string) string { return "plan " + name + " " }
	compare(d, before, after, what, d.ruleWords, func(name string, was, is []namedlimit.Rule) {
		d.rules("plan "+name+": rule ", was, is)
	})
}

func (d *differ) limits(before, after *namedlimit.Definition) {
	byRules := before.Constant == limiter.ByRules && after.Constant == limiter.ByRules
	switch {
	case !byRules && identify(&before.Policy) != identify(&after.Policy):
		d.replaced("policy", d.words(&before.Policy), d.words(&after.Policy))
	case byRules:
		if before.Plan != after.Plan {
			d.replaced("plan", cmp.Or(before.Plan, "none"), cmp.Or(after.Plan, "none"))
		}
		d.rules("rule ", before.Rules, after.Rules)
	}
	if before.Shadow != after.Shadow {
		d.replaced("shadow", strconv.FormatBool(before.Shadow), strconv.FormatBool(after.Shadow))
	}
	if before.Near != after.Near {
		d.replaced("near", strconv.FormatFloat(before.Near, 'g', -1, 64), strconv.FormatFloat(after.Near, 'g', -1, 64))
	}
	if before.Unit != after.Unit {
		d.replaced("unit", cmp.Or(before.Unit, "none"), cmp.Or(after.Unit, "none"))
	}
	if before.MaxReservation != after.MaxReservation {
		d.replaced("max_reservation", boundText(before.MaxReservation), boundText(after.MaxReservation))
	}
	d.keys(before.Overrides, after.Overrides)
	d.patterns(before.Overrides, after.Overrides)
}

func boundText(share float64) string {
	if share == 0 {
		return "none"
	}
	return namedlimit.ShareText(share)
}

// rules compares rules by their label. One with another label or algorithm has another state, which is empty.
func (d *differ) rules(prefix string, before, after []namedlimit.Rule) {
	what := func(label string) string { return prefix + label + " " }
	words := func(r namedlimit.Rule) string { return strings.Join(r.Words(d.reading), " ") }
	known := byLabel(before)
	text := func(r namedlimit.Rule) string {
		if was, ok := known[r.Label()]; ok && was.Algorithm == r.Algorithm {
			return words(r)
		}
		return words(r) + ", its count begins empty"
	}
	compare(d, known, byLabel(after), what, text, func(label string, was, is namedlimit.Rule) {
		if was != is {
			d.replaced(prefix+label, words(was), text(is))
		}
	})
}

func byLabel(rules []namedlimit.Rule) map[string]namedlimit.Rule {
	all := make(map[string]namedlimit.Rule, len(rules))
	for _, r := range rules {
		all[r.Label()] = r
	}
	return all
}

func (d *differ) keys(before, after []namedlimit.Override) {
	was, is := byKey(before), byKey(after)
	for key, b := range was {
		a := is[key]
		switch {
		case a == nil:
			d.changes = append(d.changes, Change{d.limit, key, "override removed: " + d.words(&b.Policy)})
		case a.text != b.text:
			d.changes = append(d.changes, Change{d.limit, key, "override: " + d.words(&b.Policy) + " -> " + d.words(&a.Policy)})
		}
	}
	for key, a := range is {
		if was[key] == nil {
			d.changes = append(d.changes, Change{d.limit, key, "override added: " + d.words(&a.Policy)})
		}
	}
}

// override is a policy with its identity.
type override struct {
	namedlimit.Policy
	text string
}

func byKey(overrides []namedlimit.Override) map[string]*override {
	all := map[string]*override{}
	for i := range overrides {
		o := &override{overrides[i].Policy, identify(&overrides[i].Policy)}
		for _, key := range overrides[i].Keys {
			all[key] = o
		}
	}
	return all
}

// patterns compares the overrides of patterns; the first that matches counts.
func (d *differ) patterns(before, after []namedlimit.Override) {
	was, wasOrder := byPattern(before)
	is, isOrder := byPattern(after)
	what := func(pattern string) string { return "pattern " + yamlfile.Quote(pattern) + " " }
	words := func(o *override) string { return d.words(&o.Policy) }
	compare(d, was, is, what, words, func(pattern string, b, a *override) {
		if a.text != b.text {
			d.replaced("pattern "+yamlfile.Quote(pattern), words(b), words(a))
		}
	})
	gone := func(in map[string]*override) func(string) bool {
		return func(pattern string) bool { return in[pattern] == nil }
	}
	wasOrder, isOrder = slices.DeleteFunc(wasOrder, gone(is)), slices.DeleteFunc(isOrder, gone(was))
	for i, pattern := range isOrder {
		if wasOrder[i] != pattern {
			d.add("pattern " + yamlfile.Quote(pattern) + " is now looked at before " + yamlfile.Quote(wasOrder[i]))
			return
		}
	}
}

func byPattern(overrides []namedlimit.Override) (all map[string]*override, order []string) {
	all = map[string]*override{}
	for i := range overrides {
		if pattern := overrides[i].Pattern; len(overrides[i].Keys) == 0 {
			all[pattern] = &override{overrides[i].Policy, identify(&overrides[i].Policy)}
			order = append(order, pattern)
		}
	}
	return all, order
}

// identify returns the same text for equal policies, by a plan its name.
func identify(p *namedlimit.Policy) string {
	if p.Plan != "" {
		return "plan " + p.Plan
	}
	return fmt.Sprint(p.Constant, p.Rules)
}
