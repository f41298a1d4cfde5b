package dashboard

import (
	"fmt"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
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
	return []tile{v.partOf(t, words.Bytes, uint64(values.Bytes), uint64(values.MaxBytes))}
}

// valueFaults returns that values were evicted or refused lately, or that there will soon be no room for
// more.
func (v *view) valueFaults() []fault {
	values, t := &v.last.Values, v.t
	evicted, refused := v.within(evictedValue, valuesEvicted.row().within), v.within(refusedValue, valuesRefused.row().within)
	switch {
	case refused > 0:
		return []fault{{alarm: valuesRefused, what: t.ValuesFull, meaning: t.ValuesRefuses, figure: v.counted(valuesRefused, refused), todo: t.ValuesRefusedDo}}
	case evicted > 0:
		return []fault{{alarm: valuesEvicted, what: t.ValuesFull, meaning: t.ValuesEvicts, figure: v.counted(valuesEvicted, evicted), todo: t.ValuesShortDo}}
	case v.hasValues() && values.MaxBytes > 0 && memorySaturated.over(float64(values.Bytes)/float64(values.MaxBytes)) != calm:
		what := fmt.Sprintf(t.ValuesShort, words.Percent(memorySaturated.row().above))
		return []fault{{alarm: memorySaturated, tile: "valuememory", what: what, meaning: t.MemoryShortMeans, todo: t.ValuesShortDo}}
	}
	return nil
}

// valuesNote counts values, of which some never expire.
func (v *view) valuesNote() g.Node {
	if !v.hasValues() {
		return nil
	}
	values := &v.bounded.Values
	return el("p", text(fmt.Sprintf(v.t.ValuesNote, words.Grouped(int64(values.Keys)), words.Grouped(int64(values.Endless)))))
}
