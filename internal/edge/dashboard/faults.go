package dashboard

import (
	"fmt"
	"math"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/figures"
	"cellserver/internal/edge/dashboard/words"
)

// fault is a warning, such as that changes do not reach the disk or the store does not answer. Its
// first line stays the same while the fault lasts, as screen readers announce every change.
type fault struct {
	what, meaning string
	cause         string // as reported by the system
	note          string
}

func (v *view) faultPart() g.Node {
	return g.Group{v.replicationFault().node(v.t), v.keeperFault().node(v.t), v.memoryFault().node(v.t), v.valuesFault().node(v.t)}
}

// node returns nil for no fault.
func (f *fault) node(t *words.Texts) g.Node {
	if f == nil {
		return nil
	}
	return g.Group{
		el("p", class("problem"), attr("role", "alert"), text(f.what+" "+f.meaning)),
		g.If(f.cause != "", el("p", el("code", text(f.cause)), copyButton(t, f.cause))),
		g.If(f.note != "", el("p", text(f.note))),
	}
}

// keeperFault returns the fault of the store on other machines, or of the disk.
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

// lastMinute counts what was evicted and refused within a minute of the newest point. of returns both per
// second.
func lastMinute(points []point, of func(p *point) (evicted, refused float64)) (evicted, refused float64) {
	for i := len(points) - 1; i >= 0 && points[i].atNs > points[len(points)-1].atNs-int64(time.Minute); i-- {
		p, sec := &points[i], sampleInterval.Seconds()
		if i > 0 {
			sec = time.Duration(p.atNs - points[i-1].atNs).Seconds()
		}
		evictedPerSec, refusedPerSec := of(p)
		evicted += evictedPerSec * sec
		refused += refusedPerSec * sec
	}
	return evicted, refused
}

// memoryFault returns the fault that limiters were evicted or refused in the last minute.
func (v *view) memoryFault() *fault {
	evicted, refused := lastMinute(v.points, func(p *point) (evicted, refused float64) { return p.evicted, p.refused })
	switch t := v.t; {
	case math.Round(evicted) > 0:
		return &fault{what: t.MemoryFull, meaning: t.MemoryEvicts, note: fmt.Sprintf(t.EvictedLately, figures.Count.Text(math.Round(evicted)))}
	case math.Round(refused) > 0:
		return &fault{what: t.MemoryFull, meaning: t.MemoryRefuses, note: fmt.Sprintf(t.RefusedLately, figures.Count.Text(math.Round(refused)))}
	}
	return nil
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }

// lastErrorPart shows the last error reply within the history.
func (v *view) lastErrorPart() g.Node {
	last, t := &v.lastError, v.t
	age := time.Duration(v.page.source.Now() - v.erredNs)
	if v.erredNs == 0 || age > historySpan {
		return nil
	}
	by := last.Client
	if last.Name != "" {
		by += " (" + last.Name + ")"
	}
	by += " · " + fmt.Sprintf(t.Ago, t.Span(age))
	return el("div", class("last"),
		el("p", text(t.LastError+t.Colon), el("code", text(last.Text))),
		el("p", g.If(last.Command != "", g.Group{el("code", text(last.Command)), text(" · ")}), text(by)),
	)
}
