package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/store"
)

// collectRemote has series for each server of the store: as many as the operator, or its cluster, names.
func (c *collector) collectRemote(to sink) {
	status := c.config.Remote
	to.truth("store_remote", "1 if --store is on other machines, 0 if it is this server's memory: then there are no other figures of it.", status != nil)
	if status == nil {
		return
	}
	st := status()
	to.truth("store_up", "1 if a server of the store answered when it was last asked, within the last second or two.", st.Up > 0)
	to.gauge("store_masters", "Servers of the store that decide: 1, or the masters of a cluster; 0 if its slots are not known.", st.Masters)
	to.gauge("store_masters_up", "Servers of the store that decide, and answered when they were last asked.", st.Up)
	to.gauge("store_keys", "Keys that its servers had when they were last asked, those of other programs included.", st.Keys)
	policy := desc("store_policy_info", "Always 1; the label is --on-store-error.", "policy")
	to.series(policy, prometheus.GaugeValue, 1, st.Policy.String())
	to.remoteRequests(&st.Stats)
	to.remoteFailures(&st.Stats)
	to.remoteServers(&st)
}

func (to sink) remoteRequests(st *store.RemoteStats) {
	to.counter("store_requests_total", "Requests to limiters that came to the store.", st.Requests)
	to.counter("store_asked_total", "Requests that were sent to a server of the store.", st.Asked)
	to.counter("store_joined_total", "Requests that were decided by the script call of another on the same key.", st.Joined)
	to.counter("store_prefiltered_total", "Requests that were denied without asking, by what was read of the key less than a second before.", st.Prefiltered)
	to.counter("store_scripts_total", "Script calls that were sent to the store's servers.", st.Scripts)
	to.counter("store_pipelines_total", "Pipelines in which script calls were sent to the store's servers.", st.Pipelines)
	to.gauge("store_waiting_requests", "Requests that wait for the store.", st.Waiting)
	to.gauge("store_waiting_bytes", "Bytes of the keys of the requests that wait for the store.", st.WaitingBytes)
}

func (to sink) remoteFailures(st *store.RemoteStats) {
	to.labelled("store_resent_total", "Script calls that were sent again, as the server had certainly not executed them.", "reason", texts(st.Resent))
	to.labelled("store_failures_total", "Requests and other commands that the store did not carry out, by reason. Requests of limiters are left to --on-store-error, but for wrong_type; all else fails.",
		"reason", texts(st.Failed))
	byPolicy := desc("store_policy_decisions_total", "Requests that --on-store-error decided, by what it did. They are not among the decisions.", "policy", "outcome")
	for p, n := range st.Policy {
		to.series(byPolicy, prometheus.CounterValue, float64(n.Allowed), p.String(), "allowed")
		to.series(byPolicy, prometheus.CounterValue, float64(n.Limited), p.String(), "denied")
		to.series(byPolicy, prometheus.CounterValue, float64(n.Failed), p.String(), "error")
	}
	to.counter("store_late_answers_total", "Answers of the store to requests that --on-store-error had decided by then; they may have been charged.", st.Late)
}

func (to sink) remoteServers(st *store.Health) {
	queued := desc("store_server_queued_keys", "Keys with requests that wait until they are sent to a server of the store.", "server")
	inFlight := desc("store_server_pipelines_in_flight", "Pipelines that a server of the store has not answered.", "server")
	roundTrip := desc("store_server_round_trip_seconds", "How long a pipeline to a server of the store takes, on a moving average.", "server")
	for _, s := range st.Stats.Servers {
		to.series(queued, prometheus.GaugeValue, float64(s.Queued), s.Addr)
		to.series(inFlight, prometheus.GaugeValue, float64(s.InFlight), s.Addr)
		to.series(roundTrip, prometheus.GaugeValue, float64(s.RoundTripNs)/1e9, s.Addr)
	}
}

func texts(byReason map[store.Reason]uint64) map[string]uint64 {
	m := map[string]uint64{}
	for reason, n := range byReason {
		m[string(reason)] = n
	}
	return m
}
