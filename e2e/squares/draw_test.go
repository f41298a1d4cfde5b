package squares

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scale is how fast the rules of a run are: by the seconds of a clock that the test sets, or so slow that no
// unit leaks while it runs.
type scale struct {
	periods   []int64 // seconds
	every     []string
	starts    []string // of months
	most      int64    // units that leak in a period
	blockSecs []int64  // seconds
}

var (
	quick = scale{[]int64{10, 60, 3600}, []string{"minute", "hour", "day", "month"}, []string{"", "15"}, 50, []int64{1, 7, 60, 4000}}
	slow  = scale{[]int64{30 * 86_400, 40 * 86_400}, []string{"month"}, []string{"15"}, 9, []int64{20 * 86_400, 50 * 86_400}}
)

var (
	names    = []string{"a", "b", "c", "d", "e"} // the last two by commands, if the file has them not
	keys     = []string{"k1", "k2", "vip-1", "vip-2", "trial-1"}
	patterns = []string{"vip-*", "trial-*", "*-1"}
	plans    = []string{"gold", "iron"}
)

// slowNow is slow, without a month that ends soon.
func slowNow() scale {
	of := slow
	if day := time.Now().UTC().Day(); day > 10 && day < 20 {
		of.starts = []string{""}
	}
	return of
}

// artist draws definitions and calls.
type artist struct {
	*rand.Rand
	scale
}

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func (a *artist) often(percent int) bool { return a.IntN(100) < percent }

func (a *artist) rule() (r rule) {
	r.algorithm = one(a.Rand, algorithms)
	r.period = one(a.Rand, a.periods)
	a.numbers(&r)
	if a.often(35) {
		a.blockOf(&r)
	}
	if r.algorithm == aQuota {
		r.period, r.count = 0, 0
		r.every = one(a.Rand, a.every)
		switch r.every {
		case "day":
			r.zone = one(a.Rand, []string{"", "Europe/Berlin", "America/New_York"})
			r.start = one(a.Rand, []string{"", "06:00"})
		case "month":
			r.start = one(a.Rand, a.starts)
		}
	}
	return r
}

// numbers draws those that a change leaves the state for.
func (a *artist) numbers(r *rule) {
	r.capacity, r.count = 1+a.Int64N(10), 1+a.Int64N(a.most)
	if a.often(10) {
		r.capacity = 100
	}
	if !r.isFunnel() {
		r.count = 0
	}
}

// blockOf draws how a rule blocks.
func (a *artist) blockOf(r *rule) { r.block, r.each = one(a.Rand, a.blockSecs), a.often(40) }

func (a *artist) rules(named bool) (all []rule) {
	for len(all) < 1+a.IntN(3) || a.often(20) && len(all) < 8 {
		r := a.rule()
		if named && a.often(25) {
			r.name = r.algorithm + "-" + one(a.Rand, []string{"x", "y"})
		}
		if !slices.ContainsFunc(all, func(other rule) bool { return other.id() == r.id() }) {
			all = append(all, r)
		}
	}
	return all
}

func (a *artist) policy(named bool) policy {
	switch a.IntN(12) {
	case 0:
		return policy{plan: one(a.Rand, plans)}
	case 1:
		return policy{constant: one(a.Rand, []string{"DENY", "UNLIMITED"})}
	}
	return policy{rules: a.rules(named)}
}

func (a *artist) newLimit() *limit {
	l := &limit{policy: a.policy(true), shadow: a.often(25), near: one(a.Rand, []float64{0.5, 0.8, 0.8, 1})}
	free := slices.Clone(keys)
	a.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	for range a.IntN(3) {
		n := 1 + a.IntN(2)
		l.overrides = append(l.overrides, override{keys: free[:n], policy: a.other(l)})
		free = free[n:]
	}
	of := slices.Clone(patterns)
	a.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	for i := range a.IntN(3) {
		l.overrides = append(l.overrides, override{pattern: of[i], policy: a.other(l)})
	}
	return l
}

// other draws an override's policy, often with some of the limit's rules by other numbers.
func (a *artist) other(l *limit) policy {
	if len(l.rules) == 0 || a.often(40) {
		return a.policy(true)
	}
	return policy{rules: a.changed(l.rules)}
}

// changed returns rules with other numbers.
func (a *artist) changed(rules []rule) []rule {
	all := slices.Clone(rules)
	for i := range all {
		if a.often(70) {
			a.numbers(&all[i])
		}
		if all[i].block > 0 && a.often(15) {
			a.blockOf(&all[i])
		}
		if all[i].name != "" && all[i].period > 0 && a.often(30) {
			all[i].period = one(a.Rand, a.periods)
		}
	}
	return all
}

// newFile draws the definitions of a file, most of them those before with other numbers.
func (a *artist) newFile(before map[string]*limit, plansBefore map[string][]rule) (map[string]*limit, map[string][]rule) {
	now, plansNow := map[string]*limit{}, map[string][]rule{}
	for _, name := range names {
		l := before[name]
		switch byCommand := name >= "d"; {
		case name != "a" && a.often(map[bool]int{false: 5, true: 90}[byCommand]):
			continue
		case l == nil || a.often(15):
			l = a.newLimit()
		case a.often(60):
			next := *l
			next.rules = a.changed(l.rules)
			next.overrides = slices.Clone(l.overrides)
			for i := range next.overrides {
				next.overrides[i].rules = a.changed(next.overrides[i].rules)
			}
			next.shadow = a.often(25)
			l = &next
		}
		now[name] = l
	}
	for _, name := range plans {
		plansNow[name] = plansBefore[name]
		if plansNow[name] == nil || a.often(20) {
			plansNow[name] = a.rules(true)
		} else if a.often(40) {
			plansNow[name] = a.changed(plansNow[name])
		}
		if a.often(10) && !uses(now, name) { // an override by a command may have it
			delete(plansNow, name)
		}
	}
	return now, plansNow
}

// uses reports whether a limit or an override of a file has a plan.
func uses(limits map[string]*limit, plan string) bool {
	for _, l := range limits {
		if l.plan == plan || slices.ContainsFunc(l.overrides, func(o override) bool { return o.plan == plan }) {
			return true
		}
	}
	return false
}

// yaml writes a file.
func yaml(limits map[string]*limit, plans map[string][]rule) string {
	var b strings.Builder
	list := func(rules []rule) string {
		var all []string
		for i := range rules {
			all = append(all, "{"+rules[i].yaml()+"}")
		}
		return "rules: [" + strings.Join(all, ", ") + "]"
	}
	of := func(p *policy) string {
		switch {
		case p.constant != "":
			return strings.ToLower(p.constant) + ": true"
		case p.plan != "":
			return "plan: " + p.plan
		}
		return list(p.rules)
	}
	b.WriteString("limits:\n")
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		fmt.Fprintf(&b, "  %s:\n    %s\n    shadow: %t\n    near: %v\n", name, of(&l.policy), l.shadow, l.near)
		for i := range l.overrides {
			o := &l.overrides[i]
			if i == 0 {
				b.WriteString("    overrides:\n")
			}
			selects := "pattern: " + strconv.Quote(o.pattern)
			if o.pattern == "" {
				selects = "keys: [" + strings.Join(o.keys, ", ") + "]"
			}
			fmt.Fprintf(&b, "      - {%s, %s}\n", selects, of(&o.policy))
		}
	}
	if len(plans) == 0 {
		return b.String()
	}
	b.WriteString("plans:\n")
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		fmt.Fprintf(&b, "  %s: {%s}\n", name, list(plans[name]))
	}
	return b.String()
}

var allKinds = []string{
	"check", "check", "check", "check", "check", "together", "together", "explain", "page", "reserve", "reserve", "commit", "commit", "extend",
}

// asking draws a question.
func (a *artist) asking(kinds []string) (q question) {
	q.kind = one(a.Rand, kinds)
	n := 1
	if q.kind == "together" {
		n = 1 + a.IntN(4)
		q.each = a.often(25)
	}
	units, debit := a.units(), a.often(12)
	if debit {
		units = max(1, units)
	}
	if q.kind == "together" {
		units = max(0, units)
	}
	most := units > 0 && !debit && (q.kind == "check" || q.each) && a.often(20)
	mixed := q.kind == "together" && !debit && a.often(30)
	for range n {
		if mixed {
			units = max(0, a.units())
		}
		q.calls = append(q.calls, call{pair: pair{one(a.Rand, names), one(a.Rand, keys)}, units: units, debit: debit, most: most && units > 0})
	}
	return q
}

func (a *artist) units() int64 {
	switch n := a.IntN(20); {
	case n < 10:
		return 1
	case n < 15:
		return a.Int64N(12)
	case n < 17:
		return 0
	case n < 19:
		return -1 - a.Int64N(6)
	}
	return 120
}
