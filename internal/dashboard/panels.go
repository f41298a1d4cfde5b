package dashboard

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"cellserver/internal/limiter"
)

// list returns names with their values.
func list(class string, entries ...g.Node) g.Node { return h.Dl(h.Class(class), g.Group(entries)) }

func entry(name, value string) g.Node { return h.Div(h.Dt(g.Text(name)), h.Dd(g.Text(value))) }

func codeEntry(name, code string) g.Node { return h.Div(h.Dt(g.Text(name)), h.Dd(h.Code(g.Text(code)))) }

// command is the command that stands for the decisions of a kind, as it is written by who calls it.
func command(kind limiter.Kind) string {
	return [limiter.Kinds]string{
		limiter.Funnel: "CL.THROTTLE", limiter.Reserving: "CL.RESERVE", limiter.FixedWindow: "CL.FIXEDWINDOW",
		limiter.SlidingWindow: "CL.SLIDINGWINDOW", limiter.ApproxWindow: "CL.SLIDINGWINDOW APPROX", limiter.Bucket: "CL.BUCKET TAKE",
		limiter.Concurrency: "CL.CONCURRENCY ACQUIRE", limiter.Named: "CL.CHECK",
	}[kind]
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
		rows = append(rows, h.Tr(h.Data("k", name), h.Th(h.Scope("row"), g.Text(name)),
			cells(grouped(int64(n.Allowed)), grouped(int64(n.Limited)), percent(float64(n.Limited)/float64(all)))))
	}
	if !others {
		return nil
	}
	return v.section("kinds", v.t.KindsHeading, scrolling(v.t.KindsScroll, h.Table(
		headings(v.t.Command, v.t.Allowed, v.t.Limited, v.t.LimitedShare), h.TBody(rows))))
}

// leasesPart is what was taken ahead of the store on other machines; nothing while nothing was.
func (v *view) leasesPart() g.Node {
	if v.remote == nil || v.remote.Stats.Lease.Asked == 0 {
		return nil
	}
	s, t := &v.remote.Stats.Lease, v.t
	return v.section("leases", t.LeasesHeading, h.P(g.Text(t.LeasesNote)), list("list",
		entry(t.LeasedKeys, grouped(int64(s.Keys))),
		entry(t.OpenUnits, grouped(s.Open)),
		entry(t.GrantedUnits, grouped(int64(s.Granted))),
		entry(t.UsedUnits, grouped(int64(s.Used))),
		entry(t.ReturnedUnits, grouped(int64(s.Returned))),
		entry(t.LostUnits, grouped(int64(s.Lost))),
	))
}

// room is something of which there is only so much.
type room struct {
	name       string
	used, most string
	filled     float64
}

func newRoom(name string, q quantity, used, most uint64) room {
	r := room{name: name, used: q.text(float64(used)), most: "–"}
	if most > 0 {
		r.most, r.filled = q.text(float64(most)), min(1, float64(used)/float64(most))
	}
	return r
}

// capacityPart is how much of what is bounded is in use, and what was refused or ended at a bound.
func (v *view) capacityPart() g.Node {
	if v.now() == nil {
		return nil
	}
	s, t := &v.last, v.t
	rooms := []room{
		newRoom(t.Connections, count, uint64(s.Connections), uint64(s.MaxConnections)),
		newRoom(t.Memory, byteCount, s.MemoryBytes, s.MaxMemoryBytes),
		newRoom(t.TableMemory, byteCount, s.TableBytes, s.MaxTableBytes),
		newRoom(t.ClientMemory, byteCount, s.ClientBytes, s.MaxClientBytes),
	}
	refusals := []g.Node{
		entry(t.ConnectionsRefused, grouped(int64(s.ConnectionsRefused))),
		entry(t.NewKeysRefused, grouped(int64(s.NewKeysRefused))),
		entry(t.EvictedKeys, grouped(int64(s.Evicted))),
		entry(t.RefusedKeys, grouped(int64(s.Refused))),
		entry(t.ScriptsEnded, grouped(int64(s.ScriptsEnded))),
		entry(t.LogLinesLost, grouped(int64(s.LogLinesLost))),
	}
	return v.section("capacity", t.CapacityHeading, scrolling(t.CapacityScroll, h.Table(
		headings(t.Resource, t.InUse, t.Maximum), h.TBody(g.Map(rooms, room.row)))), h.P(g.Text(t.RefusalsNote)), list("list", refusals...))
}

func (r room) row() g.Node {
	return h.Tr(h.Data("k", r.name), h.Th(h.Scope("row"), g.Text(r.name)), h.Td(g.Text(r.used), g.If(r.filled > 0, meter(r.filled))), h.Td(g.Text(r.most)))
}

// meter draws what the text beside it says.
func meter(filled float64) g.Node {
	return h.Meter(h.Min("0"), h.Max("1"), h.Value(fmt.Sprintf("%.3f", filled)), h.Aria("hidden", "true"))
}
