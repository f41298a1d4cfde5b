package squares

import (
	"maps"
	"slices"
	"strings"

	"cellserver/internal/test/resptest"
)

// counts are those of a limit or a rule, as CL.LIMIT GET has them.
type counts struct{ allowed, limited, shadowLimited, near, beyond, overridden int64 }

// keep makes what a decision changes hold, and counts it.
func (m *model) keep(c call, d decision) {
	if d.changed {
		m.keys[c.pair] = d.entries
	}
	if c.units <= 0 {
		return
	}
	m.counted(c.name).add(d)
	if d.override {
		return
	}
	m.counted(c.name + " ").add(d) // an only rule has these
	if d.by.constant != "" || len(d.by.rules) < 2 {
		return
	}
	for i := range d.by.rules {
		of := m.counted(c.name + " " + d.by.rules[i].id())
		if d.marks[i] {
			of.add(d)
		} else if !d.denied {
			of.allowed++
		}
	}
}

// counted returns the counts of a limit, or of a rule behind its name.
func (m *model) counted(of string) *counts {
	if m.counts[of] == nil {
		m.counts[of] = &counts{}
	}
	return m.counts[of]
}

func (n *counts) add(d decision) {
	beyond := int64(0)
	if d.debit && d.denied && len(d.rules) > 0 {
		beyond = 1
	}
	switch {
	case d.limited:
		n.limited++
		n.beyond += beyond
	case d.denied:
		n.shadowLimited++
		n.beyond += beyond
	default:
		n.allowed++
		if d.near && len(d.rules) > 0 {
			n.near++
		}
	}
	if d.override {
		n.overridden++
	}
}

// forget drops the counts of limits and rules that are gone.
func (r *run) forget() {
	maps.DeleteFunc(r.counts, func(of string, _ *counts) bool {
		name, id, ofRule := strings.Cut(of, " ")
		l := r.limit(name)
		return l == nil || ofRule && id != "" && !slices.ContainsFunc(r.ownRules(l), func(by rule) bool { return by.id() == id })
	})
}

// ownRules returns a limit's rules, of its plan if it has one.
func (r *run) ownRules(l *limit) []rule {
	if l.plan != "" {
		return r.plans[l.plan]
	}
	return l.rules
}

// compareCounts compares the counts of all limits and their rules.
func (r *run) compareCounts() {
	for _, name := range names {
		l := r.limit(name)
		if l == nil {
			continue
		}
		rules := r.ownRules(l)
		is, ofRules := counts{}, make([]counts, len(rules))
		for _, c := range r.counters() {
			got := c.one("CL.LIMIT", "GET", name)
			is.sum(got)
			for i, of := range got.Field("rules").Elements {
				ofRules[i].sum(of)
			}
		}
		if want := *r.counted(name); is != want {
			r.fail("%s has counted %+v, want %+v", name, is, want)
		}
		for i := range rules {
			of := name + " "
			if len(rules) > 1 {
				of += rules[i].id()
			}
			want := *r.counted(of)
			if ofRules[i] != want {
				r.fail("%s: its rule %s has counted %+v, want %+v", name, rules[i].text(), ofRules[i], want)
			}
		}
	}
}

func (n *counts) sum(got resptest.Reply) {
	n.allowed += got.Field("allowed").Number
	n.limited += got.Field("limited").Number
	n.shadowLimited += got.Field("shadow_limited").Number
	n.near += got.Field("near").Number
	n.beyond += got.Field("charged_beyond").Number
	n.overridden += got.Field("overridden").Number
}
