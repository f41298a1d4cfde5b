package dashboard

import (
	"fmt"
	"math"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// answer is the state of a key and the reply to the next call for one unit.
type answer struct {
	key     string
	kind    limiter.Kind
	known   bool
	next    funnel.Result
	outlook funnel.Outlook // funnels only
	leak    string         // funnels only
	ruling  *ruling        // named limits only
}

func (p *Page) look(t *words.Texts, key store.Key, rule *limiter.Rule) (*answer, error) {
	probe, err := p.source.Look(p.source.Now(), key, rule)
	if err != nil {
		return nil, err
	}
	terms := rule.Terms()
	return &answer{
		key: resp.Quote(key.Name), kind: rule.Kind, known: probe.Known, next: probe.Next, outlook: probe.Outlook,
		leak: fmt.Sprintf(t.LeakRate, figures.Grouped(terms.Numbers[1]), figures.Grouped(terms.Numbers[2])),
	}, nil
}

func (v *view) answerPart() g.Node {
	f := &v.form
	switch {
	case f.value != nil:
		return f.value.node(v.t)
	case f.kind == nil:
		return el("p", text(v.t.NoLook))
	case f.error != "":
		return el("p", class("problem"), attr("role", "alert"), text(v.t.FormErrors+" "+f.error))
	case f.answer == nil:
		return nil
	}
	a := f.answer
	is, verdict := "allowed", "✓ "+v.t.NextAllowed
	if a.next.Limited {
		is, verdict = "limited", "✕ "+v.t.NextLimited
	}
	note := v.t.NoState
	if a.kind != limiter.Funnel {
		note = v.t.NoKey
	}
	return g.Group{
		el("h3", text(v.t.StateOf+" "), keyName(a.key)),
		el("p", class("verdict "+is), text(verdict)),
		g.If(!a.known, el("p", text(note))),
		a.details(v.t),
	}
}

// details lists figures and, for a funnel, draws it.
func (a *answer) details(t *words.Texts) g.Node {
	if a.ruling != nil {
		return a.ruling.details(t, a.next)
	}
	reply := codeEntry(fmt.Sprintf(t.ReplyHeading, command(a.kind)), replyText(a.next))
	if a.kind != limiter.Funnel {
		return el("div", class("funnel"), list("list", append(windowEntries(t, a.next.Remaining, &a.next), reply)...))
	}
	entries := append(levelEntries(t, &a.outlook, a.next.Limit, a.leak), reply)
	return el("div", class("funnel"), picture(t, 0, &a.outlook, a.next.Limit), list("list", entries...))
}

// windowEntries lists the figures of what has no level.
func windowEntries(t *words.Texts, remaining int64, next *funnel.Result) []g.Node {
	entries := []g.Node{entry(t.Available, unitsText(t, figures.Grouped(remaining), next.Limit))}
	if next.RetryAfter >= 0 {
		entries = append(entries, entry(t.RetryAfter, after(t, seconds(next.RetryAfter))))
	}
	return entries
}

func levelEntries(t *words.Texts, o *funnel.Outlook, capacity int64, leak string) []g.Node {
	return []g.Node{
		entry(t.Level, unitsText(t, figures.Rate.Text(o.Level), capacity)),
		entry(t.Leak, leak),
		entry(t.UntilFree, after(t, o.FreeNs)),
		entry(t.UntilEmpty, after(t, o.EmptyNs)),
	}
}

func unitsText(t *words.Texts, units string, most int64) string {
	return fmt.Sprintf(t.UnitsOf, units, figures.Grouped(most))
}

// replyText formats a reply as redis-cli --raw would, on one line.
func replyText(r funnel.Result) string {
	limited := 0
	if r.Limited {
		limited = 1
	}
	return fmt.Sprintf("%d %d %d %d %d", limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter)
}

// funnel in units of the SVG
const (
	funnelTop  = 10.0
	funnelHigh = 100.0
)

// picture draws the n-th funnel of the page.
func picture(t *words.Texts, n int, o *funnel.Outlook, capacity int64) g.Node {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	part := o.Level / float64(max(capacity, 1))
	share, high := figures.Percent(part), funnelHigh*min(part, 1)
	title, desc := fmt.Sprintf("funnel-title-%d", n), fmt.Sprintf("funnel-desc-%d", n)
	level := unitsText(t, figures.Rate.Text(o.Level), capacity)
	return el("svg", attr("viewBox", "0 0 120 150"), attr("role", "img"), attr("aria-labelledby", title), attr("aria-describedby", desc),
		el("title", id(title), text(fmt.Sprintf(t.Picture, share, level))),
		el("desc", id(desc), text(t.FunnelDescription)),
		el("rect", class("water"), attr("x", "15"), attr("width", "90"), attr("y", number(funnelTop+funnelHigh-high)), attr("height", number(high))),
		el("path", class("glass"), attr("d", "M15 6V110H54V122M66 122V110H105V6")),
		el("path", class("water"), attr("d", "M60 128q6 9 0 12q-6-3 0-12")),
		el("text", attr("x", "60"), attr("y", "66"), attr("text-anchor", "middle"), text(share)),
	)
}

// after formats a time ns from now.
func after(t *words.Texts, ns uint64) string {
	if ns == 0 {
		return t.Now
	}
	return fmt.Sprintf(t.In, figures.Wait(ns))
}

// lookLink returns a link that inspects a key with the terms of its last request.
func (v *view) lookLink(name, db string, terms limiter.Terms) string {
	link, row := url.Values{"key": {resp.Quote([]byte(name))}}, terms.Kind.Row()
	switch kind := v.page.formKind(terms.Kind); {
	case terms.Kind == limiter.Funnel:
	case kind == nil:
		link.Set("kind", "other") // not inspectable
	case kind.namesLimit():
		link = v.namedLink(name)
	default:
		link.Set("kind", kind.Short)
	}
	link.Set("db", db)
	if v.query.Has("lang") {
		link.Set("lang", v.query.Get("lang"))
	}
	if terms.Numbers[0] > 0 { // without numbers, no request is known
		for i, n := range v.page.formNumbers(terms) {
			link.Set(row.Arguments()[i], strconv.FormatInt(n, 10))
		}
	}
	return "/?" + link.Encode() + "#look"
}

// formNumbers returns the numbers of terms as the form takes them.
func (p *Page) formNumbers(terms limiter.Terms) []int64 {
	row, n := terms.Kind.Row(), terms.Numbers
	if terms.Kind == limiter.Funnel {
		if p.source.Reading == funnel.Burst {
			n[0]--
		}
		n[1], n[2] = inSeconds(terms.Unit, n[1], n[2])
	}
	return n[:len(row.Arguments())]
}

// inSeconds converts count and period to a period in whole seconds with the same rate.
func inSeconds(unit funnel.Unit, count, period int64) (countInSec, periodSec int64) {
	const ms = 1000
	switch {
	case unit != funnel.Milliseconds:
		return count, period
	case period%ms == 0:
		return count, period / ms
	case count > math.MaxInt64/ms:
		return count, max(1, period/ms) // nearly the same, for an absurd count
	}
	return count * ms, period
}
