package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// looksByName reports whether keys under the names of limits can be inspected.
func (p *Page) looksByName() bool { return p.source.Limits != nil && p.source.State != nil }

func (p *Page) limitNames() (names []string) {
	for _, l := range p.source.Limits() {
		names = append(names, l.Name)
	}
	return names
}

// limitOf returns a named limit, or nil.
func (p *Page) limitOf(name string) *namedlimit.Limit {
	all := p.source.Limits()
	i, found := slices.BinarySearchFunc(all, name, func(l *namedlimit.Limit, name string) int { return cmp.Compare(l.Name, name) })
	if !found {
		return nil
	}
	return all[i]
}

// ruling is what decides a key's requests under a name.
type ruling struct {
	override string // as text; empty for none
	shadowed bool   // only a shadow allows the next call
	policy   namedlimit.Policy
	rules    []ruleLook // of the policy
}

// ruleLook is a rule's view of a key.
type ruleLook struct {
	text    string
	now     funnel.Result // of a call for no unit
	next    funnel.Result // of one for a unit
	isLevel bool          // the rule is a funnel or its mirror, a token bucket
	outlook funnel.Outlook
	leak    string
}

// lookByName inspects a key under the name of a limit, or sets the errors. ok is false if other fields have
// errors.
func (p *Page) lookByName(t *words.Texts, f *form, key store.Key, ok bool) {
	name := &f.fields[1]
	limit := p.limitOf(strings.TrimSpace(name.value))
	switch {
	case strings.TrimSpace(name.value) == "":
		name.error = t.LimitMissing
		return
	case limit == nil:
		name.error = t.LimitUnknown
		return
	case !ok:
		return
	}
	joined := append([]byte(limit.Name+":"), key.Name...) // as CL.CHECK does
	if len(joined) > p.source.MaxKeyBytes {
		f.key.error = fmt.Sprintf(t.KeyTooLong, p.source.MaxKeyBytes-len(limit.Name)-1)
		return
	}
	var err error
	f.answer, err = p.lookNamed(t, limit, key, joined)
	f.lookError(t, err)
}

func (p *Page) lookNamed(t *words.Texts, l *namedlimit.Limit, key store.Key, joined []byte) (*answer, error) {
	nowNs := p.source.Now()
	by := l.Explain(key.Name, p.source.Now, p.source.Reading)
	state, known, err := p.source.State(nowNs, store.Key{DB: key.DB, Name: joined})
	if err != nil {
		return nil, err
	}
	rule := limiter.OfNamed(by.Named)
	probe, err := decide.Look(read{state, known}, nowNs, key, &rule)
	if err != nil {
		return nil, err
	}
	is := &ruling{override: by.Override, shadowed: probe.Next.Marks&funnel.Shadowed != 0, policy: by.Policy}
	if by.Named.Constant == limiter.ByRules {
		is.rules = ruleLooks(t, &by, &state, nowNs)
	}
	return &answer{key: resp.Quote(joined), kind: limiter.Named, known: known, next: probe.Next, ruling: is}, nil
}

// read is the state of a key that was read once.
type read struct {
	state limiter.State
	known bool
}

func (r read) State(int64, store.Key) (limiter.State, bool, error) {
	return limiter.Shifted(r.state, 0), r.known, nil
}

// ruleLooks looks at a key by each rule.
func ruleLooks(t *words.Texts, by *namedlimit.Explanation, state *limiter.State, nowNs int64) []ruleLook {
	precise := by.Named.Precise()
	looks := make([]ruleLook, len(precise.Rules))
	for i := range looks {
		of := &by.Rules[i]
		looks[i] = ruleLook{text: ruleText(t, of), now: by.Named.Look(i, state, nowNs, 0), next: by.Named.Look(i, state, nowNs, 1)}
		if rule := &precise.Rules[i].Rule; rule.Kind == limiter.Funnel {
			looks[i].isLevel, looks[i].leak = true, fmt.Sprintf(t.LeakRate, figures.Grouped(of.Count), figures.Grouped(of.PeriodSec))
			looks[i].outlook = outlookOf(&rule.Funnel, precise.Look(i, state, nowNs, 0), precise.Look(i, state, nowNs, 1))
		}
	}
	return looks
}

// outlookOf returns the outlook of a funnel from looks for no unit and for one, whose times are milliseconds.
func outlookOf(l *funnel.Limit, none, one funnel.Result) funnel.Outlook {
	o := funnel.Outlook{EmptyNs: uint64(none.ResetAfter) * uint64(time.Millisecond)}
	o.Level = float64(o.EmptyNs) / float64(max(l.IntervalNs(), 1))
	used := float64(none.Limit - none.Remaining)
	if o.Level = max(o.Level, used-1); none.Remaining > 0 { // units are exact where a millisecond is many
		o.Level = min(o.Level, used)
	}
	if one.Limited {
		o.FreeNs = uint64(max(one.RetryAfter, 0)) * uint64(time.Millisecond)
	}
	return o
}

// details draws each funnel, and lists all rules in a table.
func (r *ruling) details(t *words.Texts, next funnel.Result) g.Node {
	override := el("p", text(t.NoOverride))
	if r.override != "" {
		override = el("p", text(t.ByOverride+" "), el("code", text(r.override)))
	}
	reply := codeEntry(fmt.Sprintf(t.ReplyHeading, command(limiter.Named)), replyText(next))
	if len(r.rules) == 0 {
		return g.Group{override, el("p", text(policyText(t, &r.policy))), el("div", class("funnel"), list("list", reply))}
	}
	var all g.Group
	rows := make(g.Group, len(r.rules))
	for i := range r.rules {
		all = append(all, r.rules[i].details(t, i))
		rows[i] = r.rules[i].row(t)
	}
	return g.Group{
		override, g.If(r.shadowed, el("p", text(t.ShadowedNext))), all,
		scrolling(t.RulesScroll, el("table", headings(t.Rule, t.Remaining, t.Limit, t.RetryAfter, t.ResetAfter), el("tbody", rows))),
		el("div", class("funnel"), list("list", reply)),
	}
}

func (r *ruleLook) details(t *words.Texts, n int) g.Node {
	heading := el("h4", text(r.text))
	if !r.isLevel {
		return g.Group{heading, el("div", class("funnel"), list("list", windowEntries(t, r.now.Remaining, &r.next)...))}
	}
	return g.Group{heading, el("div", class("funnel"), picture(t, n, &r.outlook, r.next.Limit), list("list", levelEntries(t, &r.outlook, r.next.Limit, r.leak)...))}
}

func (r *ruleLook) row(t *words.Texts) g.Node {
	retry := "–"
	switch {
	case r.next.Limited && r.next.RetryAfter < 0:
		retry = t.NoRetry
	case r.next.Limited:
		retry = after(t, seconds(r.next.RetryAfter))
	}
	return el("tr", el("th", attr("scope", "row"), text(r.text)),
		cells(figures.Grouped(r.now.Remaining), figures.Grouped(r.now.Limit), retry, after(t, seconds(r.now.ResetAfter))))
}

// seconds returns seconds in nanoseconds.
func seconds(sec int64) uint64 {
	return uint64(min(max(sec, 0), math.MaxInt64/int64(time.Second))) * uint64(time.Second)
}

// namedLink returns the values of a link that inspects a key under the name of a limit.
func (v *view) namedLink(name string) url.Values {
	link := url.Values{"kind": {namedShort}}
	limit, key, joined := strings.Cut(name, ":") // no limit's name has a colon
	if joined && slices.ContainsFunc(v.limits, func(r limitRow) bool { return r.Name == limit }) {
		link.Set("limit", limit)
		name = key
	}
	link.Set("key", resp.Quote([]byte(name)))
	return link
}
