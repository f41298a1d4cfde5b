package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/edge/door"
	"cellserver/internal/limiter"
)

// Facts describes the server beside figures.
type Facts struct {
	Host      string
	Listens   []Listener
	Client    string // redis-cli with the options to connect
	StartedNs int64  // Unix time
	Revision  string // source commit, or empty
	Store     string // URL of the store without a password; empty for memory
	Warnings  []Warning
}

// Listener is where clients reach the server.
type Listener struct{ Name, Addr string }

// Warning is a problem that the operator should know.
type Warning uint8

const (
	NoPassword      Warning = iota // other hosts can use the server without a password
	RefusesHosts                   // protected mode refuses other hosts, as no password is set
	OpenPage                       // other hosts can read this page without a secret
	UnencryptedPage                // secrets cross the network in clear
	warnings
)

func (v *view) factsPart() g.Node {
	f, t := v.page.source.Facts(), v.t
	version := v.page.source.Version
	if f.Revision != "" {
		version += " (" + f.Revision[:min(len(f.Revision), 9)] + ")"
	}
	store := t.InMemory
	if f.Store != "" {
		store = f.Store
	}
	facts := []g.Node{entry(t.Host, f.Host)}
	for _, l := range f.Listens {
		facts = append(facts, entry(strings.ToUpper(l.Name), l.Addr))
	}
	facts = append(facts, entry(t.Uptime, t.Span(time.Duration(v.page.source.Now()-f.StartedNs))), entry(t.Version, version), entry(t.Store, store))
	if v.replication != nil {
		facts = append(facts, entry(t.Role, role(t, v.replication)))
	}
	if v.remote == nil {
		facts = append(facts, entry(t.Durability, v.durability()))
	}
	notices := v.replicaNotices()
	for _, w := range f.Warnings {
		notices = append(notices, [warnings]string{
			NoPassword: t.NoPassword, RefusesHosts: t.RefusesHosts, OpenPage: t.OpenPage, UnencryptedPage: t.UnencryptedPage,
		}[w])
	}
	return g.Group{
		list("facts", facts...),
		g.If(len(notices) > 0, el("ul", class("warnings"), g.Map(notices, func(notice string) g.Node { return el("li", text(notice)) }))),
	}
}

// command returns the command that stands for the decisions of a kind.
func command(kind limiter.Kind) string {
	row := kind.Row()
	return row.Call()
}

// kindsPart shows decisions by kind of limiter, if there are others than funnels.
func (v *view) kindsPart() g.Node {
	var rows g.Group
	mixed := false
	for kind, n := range v.last.Outcomes {
		all := n.Allowed + n.Limited
		if all == 0 {
			continue
		}
		mixed = mixed || limiter.Kind(kind) != limiter.Funnel
		name := command(limiter.Kind(kind))
		rows = append(rows, el("tr", attr("data-k", name), el("th", attr("scope", "row"), text(name)),
			cells(words.Grouped(int64(n.Allowed)), words.Grouped(int64(n.Limited)), words.Percent(float64(n.Limited)/float64(all)))))
	}
	if !mixed {
		return nil
	}
	return v.section("kinds", v.t.KindsHeading, el("p", text(v.t.KindsNote)), scrolling(v.t.KindsScroll, el("table",
		headings(v.t.Command, v.t.Allowed, v.t.Limited, v.t.LimitedShare), el("tbody", rows))))
}

type resource struct {
	name       string
	used, most string
	filled     float64
}

func newResource(name string, q words.Quantity, used, most uint64) resource {
	r := resource{name: name, used: q.Text(float64(used)), most: "–"}
	if most > 0 {
		r.most, r.filled = q.Text(float64(most)), min(1, float64(used)/float64(most))
	}
	return r
}

// capacityPart shows the use of bounded resources beside the tiles, and what was refused or ended at a bound.
func (v *view) capacityPart() g.Node {
	if v.now() == nil {
		return nil
	}
	s, t := v.bounded, v.t
	resources := []resource{newResource(t.ClientMemory, words.Bytes, s.ClientBytes, s.MaxClientBytes)}
	switch {
	case v.keysHaveMaximum():
		resources = append(resources, newResource(t.Memory, words.Bytes, s.MemoryBytes, s.MaxMemoryBytes))
	case v.remote == nil:
		resources = append(resources, newResource(t.TableMemory, words.Bytes, s.TableBytes, s.MaxTableBytes))
	}
	if v.hasValues() {
		most := uint64(s.Values.MaxBytes)
		resources = append(resources, newResource(t.ValueMemory, words.Bytes, uint64(s.Values.Bytes), most))
	}
	refusals := []g.Node{
		entry(t.ConnectionsRefused, words.Grouped(int64(s.ConnectionsRefused))),
		entry(t.NewKeysRefused, words.Grouped(int64(s.NewKeysRefused))),
		entry(t.EvictedKeys, words.Grouped(int64(s.Evicted))),
		entry(t.RefusedKeys, words.Grouped(int64(s.Refused))),
		entry(t.EvictedValues, words.Grouped(int64(s.Values.Evicted))),
		entry(t.RefusedValues, words.Grouped(int64(s.Values.Refused))),
		entry(t.ScriptsEnded, words.Grouped(int64(s.ScriptsEnded))),
		entry(t.LogLinesLost, words.Grouped(int64(s.LogLinesLost))),
	}
	return v.section("capacity", t.CapacityHeading, scrolling(t.CapacityScroll, el("table",
		headings(t.Resource, t.InUse, t.Maximum), el("tbody", g.Map(resources, resource.row)))), v.valuesNote(), el("p", text(t.RefusalsNote)), list("list", refusals...))
}

func (r resource) row() g.Node {
	return el("tr", attr("data-k", r.name), el("th", attr("scope", "row"), text(r.name)), el("td", text(r.used), g.If(r.filled > 0, meter(r.filled, 0))), el("td", text(r.most)))
}

// meter draws what the text beside it says: amber above a share, and red where limiters are nearly full. Much
// is 0 for the shares of memory.
func meter(filled, much float64) g.Node {
	bound, most := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }, 1.0
	if much == 0 {
		much, most = memorySaturated.row().above, memoryFull.row().above
	}
	return el("meter",
		attr("min", "0"), attr("max", "1"),
		attr("low", bound(much)), attr("high", bound(most)), attr("optimum", "0"),
		attr("value", fmt.Sprintf("%.3f", filled)), attr("aria-hidden", "true"))
}

// valuesNote counts values, of which some never expire.
func (v *view) valuesNote() g.Node {
	if !v.hasValues() {
		return nil
	}
	values := &v.bounded.Values
	return el("p", text(fmt.Sprintf(v.t.ValuesNote, words.Grouped(int64(values.Keys)), words.Grouped(int64(values.Endless)))))
}

// doorsPart shows the requests of the protocols beside RESP since the start.
func (v *view) doorsPart() g.Node {
	doors, t := v.page.source.Doors, v.t
	if len(doors) == 0 {
		return nil
	}
	var rows g.Group
	for _, name := range slices.Sorted(maps.Keys(doors)) {
		counts := doors[name].Counts()
		row := g.Group{attr("data-k", name), el("th", attr("scope", "row"), text(name))}
		for _, outcome := range door.Outcomes() {
			row = append(row, cells(words.Grouped(int64(counts.Of(outcome)))))
		}
		p99 := "–"
		if counts.Durations.Count > 0 {
			p99 = words.DurationNs.Text(float64(counts.Durations.Quantile(0.99)))
		}
		rows = append(rows, el("tr", append(row, cells(p99))))
	}
	return v.section("doors", t.DoorsHeading, scrolling(t.DoorsScroll, el("table",
		headings(t.Door, t.Allowed, t.Limited, t.DoorRefused, t.DoorFailed, t.LatencyP99), el("tbody", rows))))
}

// Refusal counts calls of a command that the server does not have.
type Refusal struct {
	Command string // empty for all that are unknown, whose names clients choose
	Reason  string // the error, which says what to send instead
	Calls   uint64
}

const maxRefusals = 10

// refusedPart shows which commands were refused, if any.
func (v *view) refusedPart() g.Node {
	t, all := v.t, v.page.source.Refused()
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
