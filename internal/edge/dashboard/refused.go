package dashboard

import (
	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
)

// Refusal counts calls of a command that the server does not have.
type Refusal struct {
	Command string // empty for all that are unknown, whose names clients choose
	Reason  string // the error, which says what to send instead
	Calls   uint64
}

const maxRefusals = 10

// refusedPart shows which commands were refused, if any.
func (v *view) refusedPart() g.Node {
	t := v.t
	if v.page.source.Refused == nil {
		return nil
	}
	all := v.page.source.Refused()
	if len(all) == 0 {
		return nil
	}
	return v.section("refused", t.RefusedHeading, el("p", text(t.RefusedNote)), scrolling(t.RefusedScroll, el("table",
		headings(t.Command, t.RefusedCalls), el("tbody", g.Map(all[:min(len(all), maxRefusals)], func(r Refusal) g.Node {
			name := el("code", text(r.Command))
			if r.Command == "" {
				name = text(t.UnknownCommands)
			}
			return el("tr", attr("data-k", r.Command), el("th", attr("scope", "row"), name, g.If(r.Reason != "", g.Group{text(" "), el("small", text(r.Reason))})),
				cells(words.Grouped(int64(r.Calls))))
		})))))
}
