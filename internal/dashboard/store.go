package dashboard

import (
	"fmt"
	"time"

	"cellserver/internal/remote"
	"cellserver/internal/remote/watch"
)

// storeView is what is known of a store on other machines.
type storeView struct {
	Note    string
	Servers []storeServerView
}

type storeServerView struct{ Addr, Circuit, Queued, InFlight, RoundTrip string }

// newStoreView returns nil for a store in memory.
func newStoreView(t *texts, st *watch.Status) *storeView {
	if st == nil {
		return nil
	}
	s, whole := &st.Stats, func(n uint64) string { return count.text(float64(n)) }
	v := &storeView{Note: fmt.Sprintf(t.StoreNote, st.Store, whole(s.Requests), whole(s.Asked), whole(s.Scripts), whole(s.Prefiltered), whole(s.Leased),
		whole(s.ByPolicy()), st.Policy)}
	for _, server := range s.Servers {
		v.Servers = append(v.Servers, storeServerView{
			server.Addr, circuitText(t, st.Server(server.Addr).State), count.text(float64(server.Queued)), count.text(float64(server.InFlight)),
			durationNs.text(float64(server.RoundTripNs)),
		})
	}
	return v
}

func circuitText(t *texts, state string) string {
	switch state {
	case "open":
		return t.CircuitOpen
	case "half-open":
		return t.CircuitHalfOpen
	}
	return t.CircuitClosed
}

// storeState returns how the store is, in a few words.
func storeState(t *texts, st *watch.Status, nowNs int64) string {
	switch {
	case !st.Asked:
		return t.StoreConnecting
	case st.Away():
		return fmt.Sprintf(t.StoreAwayFor, time.Duration(nowNs-st.SinceNs).Round(time.Second))
	case st.Fault != nil:
		return fmt.Sprintf(t.StorePartly, st.Up, st.Masters)
	}
	return t.StoreAnswers
}

// storeFault is the warning that the store does not answer, or a part of it; nil while all of it does. As that about the disk,
// it stays the same while the fault does.
func storeFault(t *texts, st *watch.Status) *faultView {
	if st.Fault == nil {
		return nil
	}
	meaning := [...]string{remote.Error: t.StoreErrors, remote.Allow: t.StoreAllows, remote.Deny: t.StoreDenies, remote.Local: t.StoreLocal}[st.Policy]
	v := &faultView{Since: fmt.Sprintf(t.StorePartly, st.Up, st.Masters) + t.Stop, Meaning: meaning, Cause: st.Fault.Error()}
	if st.Away() {
		v.Since = fmt.Sprintf(t.StoreAwaySince, utc(st.SinceNs))
	}
	return v
}
