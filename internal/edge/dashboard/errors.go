package dashboard

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"
)

// lastErrorPart is the last error reply, for as long as the history goes back.
func (v *view) lastErrorPart() g.Node {
	last, t := &v.lastError, v.t
	age := time.Duration(v.page.source.Now() - v.erredNs)
	if v.erredNs == 0 || age > historySpan {
		return nil
	}
	by := last.Client
	if last.Name != "" {
		by += " (" + last.Name + ")"
	}
	by += " · " + fmt.Sprintf(t.Ago, t.Span(age))
	return el("div", class("last"),
		el("p", text(t.LastError+t.Colon), el("code", text(last.Text))),
		el("p", g.If(last.Command != "", g.Group{el("code", text(last.Command)), text(" · ")}), text(by)),
	)
}
