package dashboard

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// tile is one current value.
type tile struct {
	id, name, text string
	of             string  // what it is a part of, in words; empty for none
	filled         float64 // how much of that, from 0 to 1
	column         string  // of which it shows the last minutes; empty for none
}

func (v *view) nowPart() g.Node {
	now := v.now()
	if now == nil {
		return h.P(g.Text(v.t.Waiting))
	}
	summary := fmt.Sprintf(v.t.Summary, rate.text(now.allowed), rate.text(now.limited), count.text(float64(now.connections)),
		count.text(float64(now.keys)), byteCount.text(float64(now.memoryBytes)))
	return g.Group{
		h.Dl(h.Class("tiles"), g.Map(v.tiles(now), tile.node)),
		h.P(h.ID("summary"), h.Class("unseen"), g.Text(summary)),
	}
}

func (t tile) node() g.Node {
	return h.Div(
		h.Class("tile"), h.Data("k", t.id),
		h.Dt(g.Text(t.name)),
		h.Dd(
			h.Span(h.Class("value"), g.Text(t.text), g.If(t.of != "", h.Small(g.Text(" "+t.of)))),
			g.If(t.of != "", h.Meter(h.Min("0"), h.Max("1"), h.Value(strconv.FormatFloat(t.filled, 'f', 3, 64)), h.Aria("hidden", "true"))),
			g.If(t.column != "", g.El("svg", h.Class("spark"), h.Data("col", t.column), g.Attr("data-own"), h.Aria("hidden", "true"))),
		),
	)
}

func (v *view) tiles(now *point) []tile {
	t := v.t
	limited := tile{id: "share", name: t.LimitedShare, text: "–", column: "share"}
	if share, ok := now.limitedShare(); ok {
		limited.text = percent(share)
	}
	tiles := []tile{
		{id: "allowed", name: t.AllowedPerSec, text: rate.text(now.allowed), column: "allowed"},
		{id: "limited", name: t.LimitedPerSec, text: rate.text(now.limited), column: "limited"},
		limited,
	}
	if now.latency.ok {
		tiles = append(tiles, tile{id: "p99", name: t.LatencyP99, text: durationNs.text(now.latency.p99), column: "p99"})
	}
	tiles = append(tiles,
		tile{id: "connections", name: t.Connections, text: count.text(float64(now.connections)), column: "connections"},
		tile{id: "keys", name: t.Keys, text: count.text(float64(now.keys)), column: "keys"},
		v.memoryTile(now), v.keeperTile())
	for _, rare := range []struct {
		id, name string
		perSec   float64
	}{
		{"evicted", t.Evicted, now.evicted}, {"refused", t.Refused, now.refused}, {"bypolicy", t.ByPolicy, now.byPolicy},
	} {
		if rare.perSec > 0 {
			tiles = append(tiles, tile{id: rare.id, name: rare.name, text: rate.text(rare.perSec), column: rare.id})
		}
	}
	return tiles
}

func (v *view) memoryTile(now *point) tile {
	of := tile{id: "memory", name: v.t.Memory, text: byteCount.text(float64(now.memoryBytes)), column: "memory"}
	if now.maxMemoryBytes > 0 {
		of.of = fmt.Sprintf(v.t.Of, byteCount.text(float64(now.maxMemoryBytes)))
		of.filled = min(1, float64(now.memoryBytes)/float64(now.maxMemoryBytes))
	}
	return of
}

// keeperTile is about what keeps the states: this server, perhaps on a disk, or a store on other machines.
func (v *view) keeperTile() tile {
	if v.remote == nil {
		return tile{id: "durability", name: v.t.Durability, text: v.page.durability(v.t)}
	}
	return tile{id: "store", name: v.t.Store, text: storeState(v.t, v.remote, v.page.source.Now())}
}
