package dashboard

import (
	"strconv"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/resp"
)

func (v *view) topPart() g.Node {
	if v.last.Allowed+v.last.Limited == 0 && len(v.requested) == 0 {
		return v.firstCall()
	}
	return g.Group{v.ranking(v.t.TopRequested, v.requested), v.ranking(v.t.TopLimited, v.limited)}
}

// firstCall says what to type while there was no call.
func (v *view) firstCall() g.Node {
	call := v.page.facts().Client + " cl.throttle laoqian:reply 15 30 60 1"
	return el("div", class("first"), el("p", text(v.t.FirstCall)), el("p", el("code", text(call)), copyButton(v.t, call)))
}

// ranking returns the table of the keys of one ranking.
func (v *view) ranking(title string, keys []topkeys.Entry) g.Node {
	if len(keys) == 0 {
		return el("div", el("h3", text(title)), el("p", text(v.t.TopNone)))
	}
	return el("div", el("h3", text(title)), el("table",
		headings(v.t.Key, v.t.PerSec, v.t.Share),
		el("tbody", g.Map(keys, v.hotKey)),
	))
}

func (v *view) hotKey(k topkeys.Entry) g.Node {
	quoted, db := resp.Quote([]byte(k.Name)), strconv.Itoa(int(k.DB))
	name := keyName(quoted)
	if !k.Cut {
		name = g.Group{el("a", attr("href", v.lookLink(quoted, db, k.Terms)), name), copyButton(v.t, quoted)}
	}
	return el("tr",
		attr("data-k", db+":"+quoted),
		el("th", attr("scope", "row"), name, g.If(k.DB != 0, el("small", text(" db "+db)))),
		cells(perSecond(k), figures.Percent(k.Share)),
	)
}

// perSecond writes a key's rate and, unless it is exact, its error.
func perSecond(k topkeys.Entry) string {
	switch {
	case !k.IsRecent:
		return "–"
	case k.RecentError == 0:
		return figures.Estimate(k.Recent)
	}
	return figures.Estimate(k.Recent) + " ± " + figures.Estimate(k.RecentError)
}
