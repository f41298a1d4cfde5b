package dashboard

import (
	"cmp"
	"fmt"
	"time"

	g "maragu.dev/gomponents"

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
		return fmt.Sprintf(t.LoadingPart, words.Percent(0))
	case st.Loading:
		return fmt.Sprintf(t.LoadingPart, words.Percent(min(1, float64(st.LoadedBytes)/float64(st.LoadBytes))))
	case st.Fault != nil:
		return fmt.Sprintf(t.FaultFor, time.Duration(p.source.Now()-st.FaultSinceNs).Round(time.Second))
	case st.Interval == store.NoSync:
		return t.SyncBySystem
	case st.Interval == 0:
		return t.SyncBeforeReplies
	default:
		return fmt.Sprintf(t.SyncEvery, words.Wait(uint64(st.Interval)))
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
		entry(t.LastSync, words.DurationNs.Text(float64(st.LastSyncTookNs))),
		entry(t.Written, words.Bytes.Text(float64(st.WrittenBytes))),
		entry(t.LogSize, words.Bytes.Text(float64(st.LogBytes))),
		entry(t.Snapshot, words.Bytes.Text(float64(st.SnapshotBytes))),
		entry(t.LastSnapshot, saved),
		entry(t.WaitingReplies, words.Grouped(st.WaitingReplies)),
		entry(t.Faults, words.Grouped(int64(st.Faults))),
	))
}

// storePart describes a store on other machines.
func (v *view) storePart() g.Node {
	st, t := v.remote, v.t
	if st == nil {
		return nil
	}
	s, whole := &st.Stats, func(n uint64) string { return words.Count.Text(float64(n)) }
	note := fmt.Sprintf(t.StoreNote, st.Store, whole(s.Requests), whole(s.Asked), whole(s.Scripts), whole(s.Prefiltered),
		whole(s.ByPolicy()), st.Policy)
	return v.section("store", t.Store, el("p", text(note)), g.If(len(s.Servers) > 0, scrolling(t.StoreScroll, el("table",
		headings(t.StoreServer, t.Circuit, t.Queued, t.InFlight, t.RoundTrip),
		el("tbody", g.Map(s.Servers, func(server store.ServerStats) g.Node {
			return el("tr", attr("data-k", server.Addr), el("th", attr("scope", "row"), text(server.Addr)),
				cells(circuitText(t, server.Circuit), words.Count.Text(float64(server.Queued)), words.Count.Text(float64(server.InFlight)),
					words.DurationNs.Text(float64(server.RoundTripNs))))
		})),
	))))
}

func circuitText(t *words.Texts, state string) string {
	return cmp.Or(map[string]string{"open": t.CircuitOpen, "half-open": t.CircuitHalfOpen}[state], t.CircuitClosed)
}

// storeState summarizes the store's health in a few words.
func storeState(t *words.Texts, st *store.Health, nowNs int64) string {
	switch {
	case !st.Asked:
		return t.StoreConnecting
	case st.Away():
		return fmt.Sprintf(t.StoreDownFor, time.Duration(nowNs-st.SinceNs).Round(time.Second))
	case st.Fault != nil:
		return fmt.Sprintf(t.StorePartly, st.Up, st.Masters)
	}
	return t.StoreAnswers
}
