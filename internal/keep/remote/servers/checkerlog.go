package servers

import (
	"cellserver/internal/base/often"
	"cellserver/internal/store"
)

// failures counts the calls that the store did not decide for one reason.
type failures struct {
	lines  often.Counter
	logged uint64 // calls
}

// noteFailures logs the calls left to the policy, at most once a minute for each reason.
func (w *Checker) noteFailures(all map[store.Reason]uint64) {
	nowNs := w.config.Now()
	for reason, total := range all {
		if reason == WrongType { // a mistake of the client, which has the error
			continue
		}
		f := w.failures[reason]
		if f == nil {
			f = &failures{}
			w.failures[reason] = f
		}
		if total == f.logged || f.lines.Due(nowNs) == 0 {
			continue
		}
		w.config.Log.Warn("the store did not decide some calls", "reason", string(reason), "calls", total-f.logged,
			"on-store-error", w.config.Policy.String(), "hint", hintOn(reason))
		f.logged = total
	}
}

// hintOn says what to do about a reason.
func hintOn(reason store.Reason) string {
	switch reason {
	case Timeout:
		return "find out why its servers, or the network, take longer than --store-timeout; such a call may have been charged"
	case Network, CircuitOpen:
		return "find out why its servers cannot be reached"
	case QueueFull:
		return "the servers are overloaded: add some"
	case Auth:
		return "correct the user or password of --store, or that user's rights, which docs/TUNING.md lists"
	case NoScripting:
		return "its servers must have EVALSHA and SCRIPT LOAD, and allow them; docs/TUNING.md lists the rights"
	case OutOfMemory:
		return "its servers are full: raise their maxmemory, or set their maxmemory-policy to volatile-ttl"
	case ReadOnly:
		return "the server is a replica: --store must name a master, sentinels or a cluster"
	case Cluster:
		return "the cluster moves slots, or some have no master: see CLUSTER INFO there"
	case Loading:
		return "a server loads its data; wait"
	case Replicas:
		return "fewer replicas than --store-wait have answered in time; the calls were charged"
	default:
		return "with --on-store-error=error, calls get the server's own words"
	}
}
