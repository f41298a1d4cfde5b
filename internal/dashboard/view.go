package dashboard

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"cellserver/internal/remote/watch"
	"cellserver/internal/resp"
	"cellserver/internal/topkeys"
)

// view is the data of the template.
type view struct {
	T       *texts
	Version string
	Style   template.CSS
	Script  template.JS

	OtherLanguage, Reload template.URL // this page with one query parameter changed
	Lang                  string       // of the query, to be preserved
	Reloads               bool

	Fault   *faultView // nil while all is well
	Tiles   []tileView
	Summary string
	Charts  []chartView
	Minutes []minuteView
	Top     []topView
	Limits  *limitsView // nil if there are none
	Store   *storeView  // nil for one in memory
	Probe   probeView
}

// tileView is one current value.
type tileView struct{ Name, Value string }

// topView is a table of the keys of one ranking.
type topView struct {
	Title string
	Keys  []topKeyView
}

type topKeyView struct {
	Key           string
	DB            uint16
	Probe         template.URL // empty if the key is cut
	PerSec, Share string
}

func (p *Page) view(r *http.Request) (*view, error) {
	query := r.URL.Query()
	t := textsFor(query.Get("lang"), r.Header.Get("Accept-Language"))
	d, err := p.render()
	if err != nil {
		return nil, err
	}
	var remote *watch.Status
	if p.source.Remote != nil {
		st := p.source.Remote()
		remote = &st
	}
	v := &view{
		T:             t,
		Version:       p.source.Version,
		Style:         template.CSS(styleCSS), //nolint:gosec // our own file
		Script:        template.JS(liveJS),    //nolint:gosec // our own file
		OtherLanguage: with(query, "lang", t.Other),
		Reload:        with(query, "refresh", "5"),
		Lang:          query.Get("lang"),
		Reloads:       query.Get("refresh") != "",
		Fault:         p.fault(t, remote),
		Charts:        newChartViews(t, d),
		Minutes:       newMinuteViews(d.points),
		Top:           []topView{{t.TopRequested, newTopKeyViews(query, d.requested)}, {t.TopLimited, newTopKeyViews(query, d.limited)}},
		Limits:        p.limits(),
		Store:         newStoreView(t, remote),
		Probe:         p.probe(t, query),
	}
	if n := len(d.points); n > 0 {
		v.Tiles, v.Summary = p.tiles(t, &d.points[n-1], remote)
	}
	return v, nil
}

// with returns a link to this page with one query parameter changed.
func with(query url.Values, name, value string) template.URL {
	changed := url.Values{name: {value}}
	for other, values := range query {
		if other != name {
			changed[other] = values
		}
	}
	return template.URL("/?" + changed.Encode()) //nolint:gosec // Encode escapes all that could end the attribute
}

func (p *Page) tiles(t *texts, now *point, remote *watch.Status) ([]tileView, string) {
	allowed, limited := rate.text(now.allowed), rate.text(now.limited)
	share := "–"
	if all := now.allowed + now.limited; all > 0 {
		share = percent(now.limited / all)
	}
	tiles := []tileView{
		{t.Allowed + " /s", allowed},
		{t.Limited + " /s", limited},
		{t.LimitedShare, share},
	}
	if now.latency.ok {
		tiles = append(tiles, tileView{t.Latency + " " + t.P99, durationNs.text(now.latency.p99)})
	}
	connections, keys := count.text(float64(now.connections)), count.text(float64(now.keys))
	memory := byteCount.text(float64(now.memoryBytes))
	used := memory
	if now.maxMemoryBytes > 0 {
		used += " / " + byteCount.text(float64(now.maxMemoryBytes))
	}
	tiles = append(tiles, tileView{t.Connections, connections}, tileView{t.Keys, keys}, tileView{t.Memory, used}, p.keeperTile(t, remote))
	if now.evicted > 0 {
		tiles = append(tiles, tileView{t.Evicted + " /s", rate.text(now.evicted)})
	}
	if now.refused > 0 {
		tiles = append(tiles, tileView{t.Refused + " /s", rate.text(now.refused)})
	}
	if now.byPolicy > 0 {
		tiles = append(tiles, tileView{t.ByPolicy + " /s", rate.text(now.byPolicy)})
	}
	return tiles, fmt.Sprintf(t.Summary, allowed, limited, connections, keys, memory)
}

// keeperTile is about what keeps the states: this server, perhaps on a disk, or a store on other machines.
func (p *Page) keeperTile(t *texts, remote *watch.Status) tileView {
	if remote == nil {
		return tileView{t.Durability, p.durability(t)}
	}
	return tileView{t.Store, storeState(t, remote, p.source.Now())}
}

func newTopKeyViews(query url.Values, keys []topkeys.Entry) []topKeyView {
	views := make([]topKeyView, len(keys))
	for i, k := range keys {
		views[i] = topKeyView{Key: resp.Quote([]byte(k.Name)), DB: k.DB, PerSec: perSecond(k), Share: percent(k.Share)}
		if k.Cut {
			continue
		}
		link := url.Values{"key": {views[i].Key}, "db": {strconv.Itoa(int(k.DB))}}
		for _, kept := range []string{"lang", "max_burst", "count", "period"} {
			if query.Has(kept) {
				link.Set(kept, query.Get(kept))
			}
		}
		views[i].Probe = template.URL("/?" + link.Encode() + "#look") //nolint:gosec // Encode escapes all that could end the attribute
	}
	return views
}

// perSecond writes a key's rate and, unless it is exact, its error.
func perSecond(k topkeys.Entry) string {
	if k.Error == 0 {
		return rate.text(k.CallsPerSecond)
	}
	return rate.text(k.CallsPerSecond) + " ± " + rate.text(k.Error)
}
