package dashboard

import (
	"fmt"
	"math"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
)

// fault is a warning: changes do not reach the disk, the store does not answer, or memory is full. Its
// first line stays the same while the fault lasts, because a screen reader announces every change of it.
type fault struct {
	what, meaning string
	cause         string // as the system says it
	note          string
}

func (v *view) faultPart() g.Node {
	return g.Map(v.faults(), func(f *fault) g.Node { return f.node(v.t) })
}

func (f *fault) node(t *words.Texts) g.Node {
	return g.Group{
		el("p", class("problem"), attr("role", "alert"), text(f.what+" "+f.meaning)),
		g.If(f.cause != "", el("p", el("code", text(f.cause)), copyButton(t, f.cause))),
		g.If(f.note != "", el("p", text(f.note))),
	}
}

// faults returns none while all is well.
func (v *view) faults() (all []*fault) {
	for _, f := range []*fault{v.keeperFault(), memoryFault(v.t, lastMinute(v.points))} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// keeperFault returns the fault of what keeps the states, a store on other machines or a disk.
func (v *view) keeperFault() *fault {
	if v.remote != nil {
		return storeFault(v.t, v.remote)
	}
	if v.page.source.Persistence == nil {
		return nil
	}
	st := v.page.source.Persistence()
	if st.Fault == nil {
		return nil
	}
	meaning := v.t.FaultForgets
	if st.Interval == 0 {
		meaning = v.t.FaultRefuses
	}
	what := fmt.Sprintf(v.t.FaultSince, utc(st.FaultSinceNs))
	return &fault{what: what, meaning: meaning, cause: st.Fault.Error()}
}

// withoutRoom counts the keys that found no room.
type withoutRoom struct{ evicted, refused float64 }

// lastMinute counts the keys without room in the last minute.
func lastMinute(points []point) (n withoutRoom) {
	for i := len(points) - 1; i >= 0 && points[i].atNs > points[len(points)-1].atNs-int64(time.Minute); i-- {
		p, sec := &points[i], sampleInterval.Seconds()
		if i > 0 {
			sec = time.Duration(p.atNs - points[i-1].atNs).Seconds()
		}
		n.evicted += p.evicted * sec
		n.refused += p.refused * sec
	}
	return n
}

// memoryFault returns the fault that keys found no room in the last minute.
func memoryFault(t *words.Texts, n withoutRoom) *fault {
	evicted, refused := math.Round(n.evicted), math.Round(n.refused)
	switch {
	case evicted > 0:
		note := fmt.Sprintf(t.EvictedLately, figures.Count.Text(evicted))
		return &fault{what: t.MemoryFull, meaning: t.MemoryEvicts, note: note}
	case refused > 0:
		note := fmt.Sprintf(t.RefusedLately, figures.Count.Text(refused))
		return &fault{what: t.MemoryFull, meaning: t.MemoryRefuses, note: note}
	}
	return nil
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }
