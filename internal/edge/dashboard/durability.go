package dashboard

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store"
)

// durability summarizes persistence in a few words.
func (p *Page) durability(t *words.Texts) string {
	if p.source.Persistence == nil {
		return t.DurabilityOff
	}
	switch st := p.source.Persistence(); {
	case st.Loading && st.LoadBytes == 0:
		return fmt.Sprintf(t.LoadingPart, figures.Percent(0))
	case st.Loading:
		return fmt.Sprintf(t.LoadingPart, figures.Percent(min(1, float64(st.LoadedBytes)/float64(st.LoadBytes))))
	case st.Fault != nil:
		return fmt.Sprintf(t.FaultFor, time.Duration(p.source.Now()-st.FaultSinceNs).Round(time.Second))
	case st.Interval == store.NoSync:
		return t.SyncBySystem
	case st.Interval == 0:
		return t.SyncBeforeReplies
	default:
		return fmt.Sprintf(t.SyncEvery, figures.Wait(uint64(st.Interval)))
	}
}

func (v *view) durabilityPart() g.Node {
	if v.page.source.Persistence == nil {
		return nil
	}
	st, t := v.page.source.Persistence(), v.t
	ago := func(ns int64) string {
		if ns == 0 {
			return t.Never
		}
		return fmt.Sprintf(t.Ago, t.Span(time.Duration(v.page.source.Now()-ns)))
	}
	saved := ago(st.LastSaveNs)
	switch {
	case st.Saving:
		saved = t.Saving
	case st.LastSaveErr != nil:
		saved = fmt.Sprintf(t.SaveFailed, st.LastSaveErr)
	}
	return v.section("durability", t.Durability, list("list",
		entry(t.Sync, v.page.durability(t)),
		entry(t.LastSync, figures.DurationNs.Text(float64(st.LastSyncTookNs))),
		entry(t.Written, figures.Bytes.Text(float64(st.WrittenBytes))),
		entry(t.LogSize, figures.Bytes.Text(float64(st.LogBytes))),
		entry(t.Snapshot, figures.Bytes.Text(float64(st.SnapshotBytes))),
		entry(t.LastSnapshot, saved),
		entry(t.WaitingReplies, figures.Grouped(st.WaitingReplies)),
		entry(t.Faults, figures.Grouped(int64(st.Faults))),
	))
}
