package dashboard

import (
	"fmt"
	"math"
	"time"

	g "maragu.dev/gomponents"
)

// fault is the warning that changes do not reach the disk, that the store does not answer, or that memory is full. Its first
// line stays the same while the fault does: a screen reader announces it whenever it changes.
type fault struct {
	what, meaning string
	cause         string // as the system says it
	note          string
}

func (v *view) faultPart() g.Node { return g.Map(v.faults(), v.faultNode) }

func (v *view) faultNode(f *fault) g.Node {
	return g.Group{
		el("p", class("problem"), attr("role", "alert"), text(f.what+" "+f.meaning)),
		g.If(f.cause != "", el("p", el("code", text(f.cause)), v.copyButton(f.cause))),
		g.If(f.note != "", el("p", text(f.note))),
	}
}

// faults returns none while all is well.
func (v *view) faults() (all []*fault) {
	for _, f := range []*fault{v.keeperFault(), memoryFault(v.t, v.lastMinute())} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// keeperFault is about what keeps the states: a store on other machines, or a disk.
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
	f := &fault{what: fmt.Sprintf(v.t.FaultSince, utc(st.FaultSinceNs)), meaning: v.t.FaultForgets, cause: st.Fault.Error()}
	if st.Interval == 0 {
		f.meaning = v.t.FaultRefuses
	}
	return f
}

// withoutRoom counts the keys that had none.
type withoutRoom struct{ evicted, refused float64 }

// lastMinute counts them within the last minute.
func (v *view) lastMinute() (n withoutRoom) {
	for i := len(v.points) - 1; i >= 0 && v.points[i].atNs > v.now().atNs-int64(time.Minute); i-- {
		p, sec := &v.points[i], sampleInterval.Seconds()
		if i > 0 {
			sec = time.Duration(p.atNs - v.points[i-1].atNs).Seconds()
		}
		n.evicted += p.evicted * sec
		n.refused += p.refused * sec
	}
	return n
}

// memoryFault is the warning that keys had no room a moment ago.
func memoryFault(t *texts, n withoutRoom) *fault {
	switch {
	case n.evicted >= 0.5:
		return &fault{what: t.MemoryFull, meaning: t.MemoryEvicts, note: fmt.Sprintf(t.EvictedLately, count.text(math.Round(n.evicted)))}
	case n.refused >= 0.5:
		return &fault{what: t.MemoryFull, meaning: t.MemoryRefuses, note: fmt.Sprintf(t.RefusedLately, count.text(math.Round(n.refused)))}
	}
	return nil
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }
