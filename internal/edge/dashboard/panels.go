package dashboard

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/limiter"
)

// list returns names with their values.
func list(classes string, entries ...g.Node) g.Node {
	return el("dl", class(classes), g.Group(entries))
}

func entry(name, value string) g.Node { return el("div", el("dt", text(name)), el("dd", text(value))) }

func codeEntry(name, code string) g.Node {
	return el("div", el("dt", text(name)), el("dd", el("code", text(code))))
}

// command is the command that stands for the decisions of a kind, as it is written by who calls it.
func command(kind limiter.Kind) string {
	row := kind.Row()
	return row.Call()
}

// kindsPart is how often each kind of limiter has decided; nothing while it is CL.THROTTLE alone.
func (v *view) kindsPart() g.Node {
	var rows g.Group
	others := false
	for kind, n := range v.last.Outcomes {
		all := n.Allowed + n.Limited
		if all == 0 {
			continue
		}
		others = others || limiter.Kind(kind) != limiter.Funnel
		name := command(limiter.Kind(kind))
		rows = append(rows, el("tr", attr("data-k", name), el("th", attr("scope", "row"), text(name)),
			cells(figures.Grouped(int64(n.Allowed)), figures.Grouped(int64(n.Limited)), figures.Percent(float64(n.Limited)/float64(all)))))
	}
	if !others {
		return nil
	}
	return v.section("kinds", v.t.KindsHeading, scrolling(v.t.KindsScroll, el("table",
		headings(v.t.Command, v.t.Allowed, v.t.Limited, v.t.LimitedShare), el("tbody", rows))))
}

// room is something of which there is only so much.
type room struct {
	name       string
	used, most string
	filled     float64
}

func newRoom(name string, q figures.Quantity, used, most uint64) room {
	r := room{name: name, used: q.Text(float64(used)), most: "–"}
	if most > 0 {
		r.most, r.filled = q.Text(float64(most)), min(1, float64(used)/float64(most))
	}
	return r
}

// capacityPart is how much of what is bounded is in use, beside what the tiles tell, and what was refused or ended at a bound.
func (v *view) capacityPart() g.Node {
	if v.now() == nil {
		return nil
	}
	s, t := &v.last, v.t
	rooms := []room{newRoom(t.ClientMemory, figures.Bytes, s.ClientBytes, s.MaxClientBytes)}
	switch {
	case v.keysHaveMaximum():
		rooms = append(rooms, newRoom(t.Memory, figures.Bytes, s.MemoryBytes, s.MaxMemoryBytes))
	case v.remote == nil:
		rooms = append(rooms, newRoom(t.TableMemory, figures.Bytes, s.TableBytes, s.MaxTableBytes))
	}
	refusals := []g.Node{
		entry(t.ConnectionsRefused, figures.Grouped(int64(s.ConnectionsRefused))),
		entry(t.NewKeysRefused, figures.Grouped(int64(s.NewKeysRefused))),
		entry(t.EvictedKeys, figures.Grouped(int64(s.Evicted))),
		entry(t.RefusedKeys, figures.Grouped(int64(s.Refused))),
		entry(t.ScriptsEnded, figures.Grouped(int64(s.ScriptsEnded))),
		entry(t.LogLinesLost, figures.Grouped(int64(s.LogLinesLost))),
	}
	return v.section("capacity", t.CapacityHeading, scrolling(t.CapacityScroll, el("table",
		headings(t.Resource, t.InUse, t.Maximum), el("tbody", g.Map(rooms, room.row)))), el("p", text(t.RefusalsNote)), list("list", refusals...))
}

func (r room) row() g.Node {
	return el("tr", attr("data-k", r.name), el("th", attr("scope", "row"), text(r.name)), el("td", text(r.used), g.If(r.filled > 0, meter(r.filled))), el("td", text(r.most)))
}

// Above these shares a meter has the colour of a warning, and of a problem. The alerts for memory have the
// same bounds.
const (
	muchFilled   = 0.75
	nearlyFilled = 0.9
)

// meter draws what the text beside it says.
func meter(filled float64) g.Node {
	bound := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return el("meter",
		attr("min", "0"), attr("max", "1"),
		attr("low", bound(muchFilled)), attr("high", bound(nearlyFilled)), attr("optimum", "0"),
		attr("value", fmt.Sprintf("%.3f", filled)), attr("aria-hidden", "true"))
}
