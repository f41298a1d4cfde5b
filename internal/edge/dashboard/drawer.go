package dashboard

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// findForm returns the field that finds a key or a named limit.
func (v *view) findForm() g.Node {
	return el("form", id("find"), attr("role", "search"), attr("action", "/"), attr("method", "get"), kept(v.choices()),
		el("label", class("unseen"), attr("for", "field-key"), text(v.t.Find)),
		el("input", id("field-key"), attr("name", "key"), attr("type", "search"), attr("value", v.asked.Text), attr("placeholder", v.t.FindHint),
			attr("title", v.t.KeyHint), flag("required"), attr("autocomplete", "off"), attr("autocapitalize", "none"), attr("spellcheck", "false")),
		el("button", attr("type", "submit"), text(v.t.FindButton)))
}

// drawerPart shows what the address asks for, or nothing.
func (v *view) drawerPart() g.Node {
	q, t := &v.asked, v.t
	if !q.IsOpen() {
		return nil
	}
	shut := el("a", class("shut"), attr("href", v.address()), attr("aria-label", t.Close), attr("title", t.Close), text("✕"))
	inside := func(heading, body g.Node) g.Node {
		return g.Group{el("div", class("bar"), el("h2", id("drawer-heading"), attr("tabindex", "-1"), heading), shut), body}
	}
	switch {
	case q.Key != nil:
		quoted := resp.Quote(q.Key.Name)
		return inside(g.Group{keyName(quoted), copyButton(t, quoted)}, v.keyBody(q.Key))
	case q.Limit != nil:
		return inside(text(fmt.Sprintf(t.LimitTitle, q.Limit.Name)), v.limitBody(q.Limit))
	}
	return inside(text(t.NoAnswer), el("p", class("problem"), attr("role", "alert"), text(q.Problem)))
}

func (v *view) keyBody(a *ask.Answer) g.Node {
	t := v.t
	return g.Group{
		v.verdict(a), v.about(a),
		g.Iff(len(a.Rules) == 1, func() g.Node { return drawn(in(t, a.Limit), &a.Rules[0], 0) }),
		g.Iff(len(a.Rules) > 1, func() g.Node { return v.rulesDrawn(a) }),
		v.holdsPart(a), v.alike(a), keyFacts(t, a, v.page.source.Now()),
		g.If(a.Value == nil, el("section", class("minutes"), el("h3", text(t.Course)), coursePart(t, v.page.traces.OfKey(a.Key), t.CourseUnknown))),
		v.keyActions(a),
		v.selfLink(a),
	}
}

// verdict tells what the next call for one unit gets.
func (v *view) verdict(a *ask.Answer) g.Node {
	t, n := v.t, &a.Next
	tell := func(is, told string) g.Node { return el("p", class("verdict "+is), text(told)) }
	switch {
	case a.Value != nil:
		return tell("", t.IsValue)
	case !a.IsJudged() && !a.Known:
		return g.Group{tell("", t.NoSuchKey), el("p", text(t.NoSuchKeyHint))}
	case !a.IsJudged() && a.Kind == limiter.Named:
		return g.Group{tell("", t.LimitNotKnown), el("p", text(t.LimitGoneHint))}
	case !a.IsJudged():
		return g.Group{tell("", t.LimitNotKnown), el("p", text(t.LimitNotKnownHint))}
	case a.Shadowed:
		return tell("limited", t.ShadowedNext)
	case !n.Limited && n.Never:
		return tell("allowed", "✓ "+t.Unlimited)
	case !n.Limited:
		return tell("allowed", "✓ "+fmt.Sprintf(t.AllowedNow, in(t, a.Limit).amount(n.Left)))
	case n.Limited && a.Kind == limiter.Concurrency:
		return tell("limited", "✕ "+t.LimitedUntilReleased)
	case n.Never && a.Kind == limiter.Bucket:
		return tell("limited", "✕ "+t.LimitedUntilFilled)
	case n.Never:
		return tell("limited", "✕ "+t.LimitedAlways)
	default:
		return tell("limited", "✕ "+fmt.Sprintf(t.LimitedFor, words.Wait(n.FreeNs)))
	}
}

// maxAlike bounds the keys that are offered in place of one that does not exist.
const maxAlike = 5

// alike offers keys among the hottest whose name has in it what was entered, as that of a named limit's key.
func (v *view) alike(a *ask.Answer) g.Node {
	if a.Known || a.IsJudged() || len(a.Name) == 0 {
		return nil
	}
	var all g.Group
	for i := range v.hot {
		k := &v.hot[i]
		isOther := k.Name != string(a.Name) || k.DB != a.DB
		if isOther && strings.Contains(k.Name, string(a.Name)) && !k.Cut && len(all) < maxAlike {
			all = append(all, el("li", attr("data-k", k.id()), v.hotName(k)))
		}
	}
	return g.If(len(all) > 0, el("section", el("h3", text(v.t.Alike)), el("ul", class("alike"), all)))
}

// about tells which limit decides and how it is known.
func (v *view) about(a *ask.Answer) g.Node {
	t := v.t
	var lines g.Group
	switch {
	case a.Limit != nil:
		lines = append(lines, el("p", text(t.ByLimit+" "), v.limitLink(a.Limit.Name), g.If(a.Limit.Shadow, el("span", class("badge"), text(t.Shadow)))))
		if a.Override != "" {
			lines = append(lines, el("p", text(t.ByOverride+" "), el("code", text(a.Override))))
		}
		if len(a.Rules) == 1 {
			lines = append(lines, el("p", text(in(t, a.Limit).ruleText(&a.Rules[0].Rule))))
		}
	case len(a.Rules) == 1:
		lines = append(lines, el("p", el("code", text(command(a.Kind))), text(" · "+callText(t, a.Kind, &a.Rules[0].Rule))))
		source := t.LimitOfLastCall
		if a.IsGiven {
			source = t.LimitOfLink
		}
		lines = append(lines, el("p", class("soft"), text(source)))
	}
	if a.IsJudged() && !a.Known {
		lines = append(lines, el("p", class("soft"), text(t.NoState)))
	}
	for _, db := range a.Others {
		lines = append(lines, el("p", el("a", class("in"), attr("href", v.keyLink(string(a.Name), db, limiter.Terms{})), text(fmt.Sprintf(t.AlsoIn, db)))))
	}
	return lines
}

// drawn shows a rule as a picture beside its figures.
func drawn(t measure, r *ask.RuleLook, n int) g.Node {
	return el("div", class("drawn"), picture(t, r, n), list("list", ruleEntries(t, r)...))
}

// rulesDrawn shows several rules.
func (v *view) rulesDrawn(a *ask.Answer) g.Node {
	var all g.Group
	t := in(v.t, a.Limit)
	for i := range a.Rules {
		r := &a.Rules[i]
		is := "✓ "
		if r.Limited {
			is = "✕ "
		}
		all = append(all, el("section", class("rule"), el("h3", text(is+t.ruleText(&r.Rule))), drawn(t, r, i)))
	}
	return all
}

// foreverNs is further than any expiry that was asked for: keys that never expire have the last times there
// are.
const foreverNs = uint64(200 * 365 * 24 * time.Hour)

// keyFacts lists the key's kind and expiry, and the reply to a call.
func keyFacts(t *words.Texts, a *ask.Answer, nowNs int64) g.Node {
	var all []g.Node
	if a.Known {
		all = append(all, entry(t.Kind, a.State.Kind.String()))
	}
	if n, ok := ask.UnitsOf(&a.State, nowNs); a.Known && ok && !a.IsJudged() {
		all = append(all, entry(t.UnitsStored, words.Grouped(n)))
	}
	switch {
	case a.Value != nil && a.Value.Number != "":
		all = append(all, entry(t.Number, a.Value.Number))
	case a.Value != nil:
		all = append(all, entry(t.TextLength, fmt.Sprintf(t.Bytes, words.Grouped(int64(a.Value.Bytes)))))
	}
	switch {
	case !a.Known:
	case a.LeftNs(nowNs) > foreverNs:
		all = append(all, entry(t.Expires, t.NoTime))
	default:
		all = append(all, entry(t.Expires, after(t, a.LeftNs(nowNs))))
	}
	all = append(all, entry(t.Database, strconv.Itoa(int(a.DB))))
	if a.Reply != nil {
		all = append(all, codeEntry(fmt.Sprintf(t.ReplyHeading, command(a.Kind)), replyText(*a.Reply)))
	}
	return list("list", all...)
}

// replyText formats a reply as redis-cli --raw would, on one line.
func replyText(r funnel.Result) string {
	limited := 0
	if r.Limited {
		limited = 1
	}
	return fmt.Sprintf("%d %d %d %d %d", limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter)
}

// selfLink links to what the drawer shows, whatever is requested meanwhile.
func (v *view) selfLink(a *ask.Answer) g.Node {
	link := v.address("key", ask.KeyText(a.Name), "db", strconv.Itoa(int(a.DB)), "by", a.By)
	return el("p", class("self"), el("a", attr("href", link), text(v.t.LinkToKey)))
}

func (v *view) limitLink(name string) g.Node {
	return el("a", class("in"), attr("href", v.address("limit", name)), text(name))
}

// limitBody shows a named limit: its rules, last minutes, busiest keys and overrides.
func (v *view) limitBody(l *namedlimit.Limit) g.Node {
	t, c := v.t, l.Counts()
	var rules g.Group
	for i := range l.Rules {
		n := l.RuleCounts(i)
		rules = append(rules, el("tr", attr("data-k", strconv.Itoa(i)), el("th", attr("scope", "row"), text(in(t, l).ruleText(&l.Rules[i]))), countCells(&n)))
	}
	if len(l.Rules) != 1 || c.Overridden > 0 { // else the rule's counts are all
		name := in(t, l).policyText(&l.Policy)
		if len(l.Rules) > 0 {
			name = t.Together
		}
		rules = append(rules, el("tr", attr("data-k", "all"), el("th", attr("scope", "row"), text(name)), countCells(&c)))
	}
	shadow := g.Node(nil)
	if l.Shadow {
		shadow = el("p", class("soft"), text(t.ShadowNote))
	}
	return g.Group{
		shadow,
		el("section", class("minutes"), el("h3", text(t.Course)), coursePart(t, v.page.traces.OfLimit(l.Name, history.TracePoints), t.CourseSoon)),
		el("section", el("h3", text(t.RulesSince)), el("table", headings(t.Rule, t.Allowed, t.Limited, t.Near), el("tbody", rules)),
			g.If(c.Over > 0, el("p", text(fmt.Sprintf(t.OverNote, words.Grouped(int64(c.Over)))))),
			g.If(c.Overridden > 0, el("p", text(fmt.Sprintf(t.OverriddenNote, words.Grouped(int64(c.Overridden))))))),
		v.mostHeld(l), v.spendingPart(l), v.busiest(l), v.overrides(l), v.limitActions(l),
		el("p", class("self"), el("a", attr("href", v.address("limit", l.Name)), text(t.LinkToLimit))),
	}
}

// countCells returns the cells of counts: allowed, limited, near.
func countCells(c *namedlimit.Counts) g.Node {
	number := func(n uint64) string { return words.Count.Text(float64(n)) }
	return cells(number(c.Allowed), number(history.Denied(c)), number(c.Near))
}

// Bounds of a limit's lists:
const (
	maxBusiest   = 10
	maxOverrides = 20
	// manyOverrides are too many to look through every two seconds.
	manyOverrides = 10_000
)

// busiest lists the limit's keys among the hottest.
func (v *view) busiest(l *namedlimit.Limit) g.Node {
	var rows g.Group
	for i := range v.hot {
		k := &v.hot[i]
		if len(rows) == maxBusiest {
			break
		}
		if k.Terms.Kind == limiter.Named && len(k.Name) > len(l.Name) && k.Name[:len(l.Name)+1] == l.Name+":" {
			rows = append(rows, el("tr", attr("data-k", k.id()), el("th", attr("scope", "row"), v.hotName(k)), k.rateCells()))
		}
	}
	inside := el("p", class("soft"), text(v.t.TopNone))
	if len(rows) > 0 {
		inside = el("table", headings(v.t.Key, v.t.PerSec, v.t.LimitedRate), el("tbody", rows))
	}
	return el("section", el("h3", text(v.t.Busiest)), inside)
}

// overrides lists some overrides of a limit.
func (v *view) overrides(l *namedlimit.Limit) g.Node {
	t, source := v.t, &v.page.source
	keys, patterns := l.NumOverrides()
	if keys+patterns == 0 {
		return el("section", el("h3", text(t.Overrides)), el("p", class("soft"), text(t.NoOverrides)))
	}
	var rows g.Group
	if keys+patterns <= manyOverrides {
		byCommand, byFile := source.Overrides(l.Name)
		for _, o := range byCommand[:min(len(byCommand), maxOverrides)] {
			until := t.NoTime
			if o.UntilNs != 0 {
				until = after(t, uint64(max(0, o.UntilNs-source.Now())))
			}
			rows = append(rows, v.overrideRow(l, o.Key, &o.Policy, t.Command, until))
		}
		for _, o := range byFile[:min(len(byFile), maxOverrides-len(rows))] {
			name := o.Pattern
			if len(o.Keys) > 0 {
				name = o.Keys[0]
			}
			rows = append(rows, v.overrideRow(l, name, &o.Policy, t.ByFile, t.NoTime))
		}
	}
	return el("section", el("h3", text(t.Overrides)),
		g.If(len(rows) > 0, el("table", headings(t.Key, t.Rules, t.SetBy, t.Ends), el("tbody", rows))),
		g.If(keys+patterns > len(rows), el("p", class("soft"), text(fmt.Sprintf(t.MoreOverrides, words.Grouped(int64(keys+patterns-len(rows))), l.Name)))))
}

func (v *view) overrideRow(l *namedlimit.Limit, key string, p *namedlimit.Policy, by, until string) g.Node {
	quoted := resp.Quote([]byte(key))
	link := v.address("limit", l.Name, "key", ask.KeyText([]byte(key)))
	return el("tr", attr("data-k", by+key), el("th", attr("scope", "row"), el("a", class("in"), attr("href", link), keyName(quoted))),
		cells(in(v.t, l).policyText(p), by, until))
}
