package dashboard

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
)

type tile struct {
	id, name, text string
	of             string  // its maximum, in words; empty for none
	filled         float64 // share of the maximum, from 0 to 1
	much           float64 // the share above which the meter is amber; 0 for the memory's
	column         string  // drawn for the last minutes; empty for none
	urgent         urgency
}

func (v *view) nowPart() g.Node {
	now := v.now()
	if now == nil {
		return el("p", text(v.t.Waiting))
	}
	summary := fmt.Sprintf(v.t.Summary, words.Rate.Text(now.PerSec(history.Allowed)), words.Rate.Text(now.PerSec(history.Limited)), words.Count.Text(float64(now.Connections)),
		words.Count.Text(float64(now.Keys)), words.Bytes.Text(float64(now.MemoryBytes)))
	return g.Group{
		el("dl", class("tiles"), g.Map(v.tiles(now), v.tileNode)),
		el("p", id("summary"), class("unseen"), text(summary)),
	}
}

func (v *view) tileNode(t tile) g.Node {
	urgent := max(t.urgent, v.urgencyOf(t.id))
	return el("div",
		class(strings.TrimSpace("tile "+urgent.String())), attr("data-k", t.id),
		el("dt", urgent.sign(v.t), text(t.name)),
		el("dd",
			el("span", class("value"), text(t.text),
				g.If(t.of != "", g.Group{text(" "), el("small", text(t.of))})),
			g.If(t.of != "", meter(t.filled, t.much)),
			g.If(t.column != "", el("svg", class("spark"), attr("data-col", t.column), flag("data-own"), attr("aria-hidden", "true"))),
		),
	)
}

func (v *view) tiles(now *history.Point) []tile {
	t := v.t
	part := tile{id: "share", name: t.LimitedShare, text: "–", column: "share"}
	if share, ok := now.LimitedShare(); ok {
		part.text = words.Percent(share)
	}
	tiles := []tile{
		{id: "allowed", name: t.AllowedPerSec, text: words.Rate.Text(now.PerSec(history.Allowed)), column: "allowed"},
		{id: "limited", name: t.LimitedPerSec, text: words.Rate.Text(now.PerSec(history.Limited)), column: "limited"},
		part,
	}
	if now.Latency.OK {
		p99 := tile{id: "p99", name: t.LatencyP99, text: words.DurationNs.Text(now.Latency.P99), column: "p99"}
		if isSlow(now) {
			p99.urgent = latencyHigh.row().urgent
		}
		tiles = append(tiles, p99)
	}
	tiles = append(tiles,
		v.partOf(tile{id: "connections", name: t.Connections, much: connectionsSaturated.row().above, column: "connections"}, words.Count, uint64(now.Connections), uint64(v.last.MaxConnections)),
		tile{id: "keys", name: t.Keys, text: words.Count.Text(float64(now.Keys)), column: "keys"},
		v.memoryTile(now))
	tiles = append(tiles, v.valueTiles()...)
	tiles = append(append(tiles, v.replicationTile()...), v.keeperTile()...)
	for _, rare := range []struct {
		id, name string
		alarm
	}{{"evicted", t.Evicted, keysEvicted}, {"refused", t.Refused, keysRefused}, {"bypolicy", t.ByPolicy, storeFailing}} {
		if r := rare.row(); now.Since(r.count) > 0 {
			tiles = append(tiles, tile{id: rare.id, name: rare.name, text: words.Rate.Text(now.PerSec(r.count)), column: rare.id, urgent: r.urgent})
		}
	}
	return append(tiles, tile{
		id: "errors", name: t.ErrorsPerSec, text: words.Rate.Text(now.PerSec(func(s *history.Sample) uint64 { return s.Errors })), column: "errors",
		urgent: errorReplies.over(float64(now.Since(errorReplies.row().count)) / history.Interval.Seconds()),
	})
}

// keysHaveMaximum reports whether keys are evicted or refused at a part of --maxmemory.
func (v *view) keysHaveMaximum() bool { return v.remote == nil && v.last.MaxTableBytes > 0 }

func (v *view) memoryTile(now *history.Point) tile {
	if v.keysHaveMaximum() {
		t := tile{id: "keymemory", name: v.t.TableMemory, column: "keymemory"}
		return v.partOf(t, words.Bytes, now.TableBytes, v.last.MaxTableBytes)
	}
	t := tile{id: "memory", name: v.t.Memory, column: "memory"}
	return v.partOf(t, words.Bytes, now.MemoryBytes, now.MaxMemoryBytes)
}

// partOf sets a tile's value and, if there is a maximum, its share.
func (v *view) partOf(t tile, q words.Quantity, used, most uint64) tile {
	t.text = q.Text(float64(used))
	if most > 0 {
		r := newResource(t.name, q, used, most)
		t.of, t.filled = fmt.Sprintf(v.t.Of, r.most), r.filled
		number, unit, _ := strings.Cut(t.text, "\u00a0")
		if unit != "" && strings.HasSuffix(r.most, "\u00a0"+unit) {
			t.text = number // the maximum has the unit
		}
	}
	return t
}

// keeperTile returns the tile of the disk or of the store on other machines, if there is either.
func (v *view) keeperTile() []tile {
	switch {
	case v.remote != nil:
		return []tile{{id: "store", name: v.t.Store, text: storeState(v.t, v.remote, v.page.source.Now())}}
	case v.durable != nil:
		return []tile{{id: "durability", name: v.t.Durability, text: v.durability()}}
	}
	return nil
}

// hasValues reports whether the server keeps values.
func (v *view) hasValues() bool { return v.remote == nil && v.last.Values.Keys > 0 }

// valueTiles returns the tile of the values' memory, which is a part of --maxmemory or has a maximum itself.
func (v *view) valueTiles() []tile {
	values := &v.last.Values
	if !v.hasValues() || values.MaxBytes == 0 {
		return nil
	}
	t := tile{id: "valuememory", name: v.t.ValueMemory}
	return []tile{v.partOf(t, words.Bytes, uint64(values.Bytes), uint64(values.MaxBytes))}
}
