package dashboard

import (
	"fmt"
	"time"

	"cellserver/internal/persist"
	"cellserver/internal/remote/watch"
)

// durability returns what is kept on a disk and when, in a few words.
func (p *Page) durability(t *texts) string {
	if p.source.Persistence == nil {
		return t.DurabilityOff
	}
	switch st := p.source.Persistence(); {
	case st.Loading && st.LoadBytes == 0:
		return fmt.Sprintf(t.LoadingPart, percent(0))
	case st.Loading:
		return fmt.Sprintf(t.LoadingPart, percent(min(1, float64(st.LoadedBytes)/float64(st.LoadBytes))))
	case st.Fault != nil:
		return fmt.Sprintf(t.FaultFor, time.Duration(p.source.Now()-st.FaultSinceNs).Round(time.Second))
	case st.Interval == persist.NoSync:
		return t.SyncBySystem
	case st.Interval == 0:
		return t.SyncBeforeReplies
	default:
		return fmt.Sprintf(t.SyncEvery, waitText(uint64(st.Interval)))
	}
}

// faultView is the warning that changes do not reach the disk, or that the store does not answer. It stays the same while the
// fault does: a screen reader announces it whenever it changes.
type faultView struct{ Since, Meaning, Cause string }

// fault returns nil while all is well. The status is that of a store on other machines; nil for one in memory.
func (p *Page) fault(t *texts, remote *watch.Status) *faultView {
	if remote != nil {
		return storeFault(t, remote)
	}
	if p.source.Persistence == nil {
		return nil
	}
	st := p.source.Persistence()
	if st.Fault == nil {
		return nil
	}
	v := &faultView{Since: fmt.Sprintf(t.FaultSince, utc(st.FaultSinceNs)), Meaning: t.FaultForgets, Cause: st.Fault.Error()}
	if st.Interval == 0 {
		v.Meaning = t.FaultRefuses
	}
	return v
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }
