package dashboard

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"cellserver/internal/resp"
	"cellserver/internal/topkeys"
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
	return h.Div(h.Class("first"), h.P(g.Text(v.t.FirstCall)), h.P(h.Code(g.Text(call)), v.copyButton(call)))
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
		name = g.Group{h.A(h.Href(v.lookLink(quoted, db, k.Terms)), name), v.copyButton(quoted)}
	}
	return h.Tr(
		h.Data("k", db+":"+quoted),
		h.Th(h.Scope("row"), name, g.If(k.DB != 0, h.Small(g.Text(" db "+db)))),
		cells(perSecond(k), percent(k.Share)),
	)
}

// perSecond writes a key's rate and, unless it is exact, its error.
func perSecond(k topkeys.Entry) string {
	if k.Error == 0 {
		return rate.text(k.CallsPerSecond)
	}
	return rate.text(k.CallsPerSecond) + " ± " + rate.text(k.Error)
}
