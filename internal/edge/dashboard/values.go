package dashboard

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// hasValues reports whether the server keeps values.
func (v *view) hasValues() bool { return v.remote == nil && v.last.Values.Keys > 0 }

// valueTiles returns the tile of the values' memory, which is a part of --maxmemory or has a maximum itself.
func (v *view) valueTiles() []tile {
	values := &v.last.Values
	if !v.hasValues() || values.MaxBytes == 0 {
		return nil
	}
	t := tile{id: "valuememory", name: v.t.ValueMemory}
	return []tile{v.partOf(t, figures.Bytes, uint64(values.Bytes), uint64(values.MaxBytes))}
}

// valuesFault returns the fault that values were evicted or refused in the last minute.
func (v *view) valuesFault() *fault {
	evicted, refused := lastMinute(v.points, func(p *point) (evicted, refused float64) { return p.valuesEvicted, p.valuesRefused })
	switch t := v.t; {
	case math.Round(evicted) > 0:
		return &fault{what: t.ValuesFull, meaning: t.ValuesEvicts, note: fmt.Sprintf(t.ValuesEvictedLately, figures.Count.Text(math.Round(evicted)))}
	case math.Round(refused) > 0:
		return &fault{what: t.ValuesFull, meaning: t.ValuesRefuses, note: fmt.Sprintf(t.ValuesRefusedLately, figures.Count.Text(math.Round(refused)))}
	}
	return nil
}

// valuesNote counts values, of which some never expire.
func (v *view) valuesNote() g.Node {
	if !v.hasValues() {
		return nil
	}
	values := &v.last.Values
	return el("p", text(fmt.Sprintf(v.t.ValuesNote, figures.Grouped(int64(values.Keys)), figures.Grouped(int64(values.Endless)))))
}

// valueLook describes a key that holds a value. Its text is not shown.
type valueLook struct {
	key     string
	number  string // empty for a text
	bytes   int
	endless bool
	leftNs  uint64
}

// lookAtValue returns the value that a query asks about, or nil: limits do not matter for it.
func (p *Page) lookAtValue(t *words.Texts, query url.Values, of *formKind) *valueLook {
	if p.source.State == nil || p.source.Remote != nil || !query.Has("key") || of != nil && of.namesLimit() {
		return nil
	}
	key, problem := p.readKey(t, query.Get("key"))
	db, err := strconv.ParseUint("0"+strings.TrimSpace(query.Get("db")), 10, 16)
	if problem != "" || err != nil || int(db) >= p.source.Databases {
		return nil
	}
	nowNs := p.source.Now()
	s, ok, err := p.source.State(nowNs, store.Key{DB: uint16(db), Name: key})
	if err != nil || !ok || s.Kind != limiter.Value {
		return nil
	}
	is := &valueLook{key: resp.Quote(key), bytes: value.TextBytes(s.Payload), endless: limiter.IsEndless(&s), leftNs: uint64(s.ExpiresNs - nowNs)}
	if n, ok := value.Counter(s.Payload); ok {
		is.number = figures.Grouped(n)
	}
	return is
}

func (a *valueLook) node(t *words.Texts) g.Node {
	content := entry(t.TextLength, fmt.Sprintf(t.Bytes, figures.Grouped(int64(a.bytes))))
	if a.number != "" {
		content = entry(t.Number, a.number)
	}
	expires := t.NeverExpires
	if !a.endless {
		expires = after(t, a.leftNs)
	}
	return g.Group{
		el("h3", text(t.StateOf+" "), keyName(a.key)),
		el("p", class("verdict"), text(t.IsValue)),
		list("list", entry("TYPE", limiter.Value.Type()), content, entry(t.Expires, expires)),
	}
}
