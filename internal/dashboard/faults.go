package dashboard

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"
)

// fault is the warning that changes do not reach the disk, or that the store does not answer. It stays the same while the
// fault does: a screen reader announces it whenever it changes.
type fault struct{ since, meaning, cause string }

func (v *view) faultPart() g.Node {
	f := v.fault()
	if f == nil {
		return nil
	}
	return g.Group{
		el("p", class("problem"), attr("role", "alert"), text(f.since+" "+f.meaning)),
		el("p", el("code", text(f.cause)), v.copyButton(f.cause)),
	}
}

// fault returns nil while all is well.
func (v *view) fault() *fault {
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
	f := &fault{since: fmt.Sprintf(v.t.FaultSince, utc(st.FaultSinceNs)), meaning: v.t.FaultForgets, cause: st.Fault.Error()}
	if st.Interval == 0 {
		f.meaning = v.t.FaultRefuses
	}
	return f
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }
