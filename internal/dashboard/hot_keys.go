package dashboard

import (
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"cellserver/internal/resp"
	"cellserver/internal/topkeys"
)

func (v *view) topPart() g.Node {
	return g.Group{v.ranking(v.t.TopRequested, v.requested), v.ranking(v.t.TopLimited, v.limited)}
}

// ranking returns the table of the keys of one ranking.
func (v *view) ranking(title string, keys []topkeys.Entry) g.Node {
	if len(keys) == 0 {
		return h.Div(h.H3(g.Text(title)), h.P(g.Text(v.t.TopNone)))
	}
	return h.Div(h.H3(g.Text(title)), h.Table(
		headings(v.t.Key, v.t.PerSec, v.t.Share),
		h.TBody(g.Map(keys, v.hotKey)),
	))
}

func (v *view) hotKey(k topkeys.Entry) g.Node {
	quoted, db := resp.Quote([]byte(k.Name)), strconv.Itoa(int(k.DB))
	name := keyName(quoted)
	if !k.Cut {
		name = g.Group{h.A(h.Href(v.lookLink(quoted, db)), name), v.copyButton(quoted)}
	}
	return h.Tr(
		h.Data("k", db+":"+quoted),
		h.Th(h.Scope("row"), name, g.If(k.DB != 0, h.Small(g.Text(" db "+db)))),
		cells(perSecond(k), percent(k.Share)),
	)
}

// lookLink returns a link to this page that looks at a key.
func (v *view) lookLink(quoted, db string) string {
	link := url.Values{"key": {quoted}, "db": {db}}
	for _, kept := range []string{"lang", "max_burst", "count", "period"} {
		if v.query.Has(kept) {
			link.Set(kept, v.query.Get(kept))
		}
	}
	return "/?" + link.Encode() + "#look"
}

// perSecond writes a key's rate and, unless it is exact, its error.
func perSecond(k topkeys.Entry) string {
	if k.Error == 0 {
		return rate.text(k.CallsPerSecond)
	}
	return rate.text(k.CallsPerSecond) + " ± " + rate.text(k.Error)
}
