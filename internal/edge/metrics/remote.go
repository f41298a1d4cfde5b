package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/store"
)

// collectRemote has series for each server of the store, which the operator or the cluster names.
func (c *Config) collectRemote(to sink) {
	status := c.Remote
	to.truth("store_remote", "1 if --store is on other machines; 0 if it is this server's memory, without further store metrics.", status != nil)
	if status == nil {
		return
	}
	st := status()
	to.truth("store_up", "1 if any server of the store answered the last check, a second or two ago.", st.Up > 0)
	to.gauge("store_masters", "Servers of the store that decide: 1, or the masters of a cluster; 0 until its slots are known.", st.Masters)
	to.gauge("store_masters_up", "Deciding servers of the store that answered the last check.", st.Up)
	to.gauge("store_keys", "Keys on the store's servers at the last check, other programs' keys included.", st.Keys)
	policy := desc("store_policy_info", "Always 1; the label gives --on-store-error.", "policy")
	to.series(policy, prometheus.GaugeValue, 1, st.Policy.String())
	to.remoteRequests(&st.Stats)
	to.remoteFailures(&st.Stats)
	to.remoteServers(&st)
}

func (to sink) remoteRequests(st *store.RemoteStats) {
	to.counter("store_requests_total", "Limiter requests that reached the store's client.", st.Requests)
	to.counter("store_asked_total", "Limiter requests sent to a server of the store.", st.Asked)
	to.counter("store_joined_total", "Limiter requests decided by the script call of another on the same key.", st.Joined)
	to.counter("store_prefiltered_total", "Limiter requests denied locally by a state of the key read less than a second before.", st.Prefiltered)
	to.counter("store_scripts_total", "Script calls sent to the store.", st.Scripts)
	to.counter("store_pipelines_total", "Pipelines of script calls sent to the store.", st.Pipelines)
	to.gauge("store_waiting_requests", "Requests waiting for the store.", st.Waiting)
	to.gauge("store_waiting_bytes", "Key bytes of the requests waiting for the store.", st.WaitingBytes)
}

func (to sink) remoteFailures(st *store.RemoteStats) {
	labelled(to, "store_resent_total", "Script calls sent again because the server had certainly not executed them.", "reason", st.Resent)
	labelled(to, "store_failures_total", "Requests and other commands the store failed to execute, by reason. "+
		"--on-store-error decides limiter requests, except for wrong_type; other commands fail.", "reason", st.Failed)
	byPolicy := desc("store_policy_decisions_total", "Requests decided by --on-store-error; decisions_total does not count them.", "policy", "outcome")
	for p, n := range st.Policy {
		to.series(byPolicy, prometheus.CounterValue, float64(n.Allowed), p.String(), "allowed")
		to.series(byPolicy, prometheus.CounterValue, float64(n.Limited), p.String(), "denied")
		to.series(byPolicy, prometheus.CounterValue, float64(n.Failed), p.String(), "error")
	}
	to.counter("store_late_answers_total", "Answers of the store that arrived after --on-store-error had decided; the store may have counted them.", st.Late)
}

func (to sink) remoteServers(st *store.Health) {
	queued := desc("store_server_queued_keys", "Keys with requests queued for a server of the store.", "server")
	inFlight := desc("store_server_pipelines_in_flight", "Pipelines a server of the store has not answered yet.", "server")
	roundTrip := desc("store_server_round_trip_seconds", "Moving average of a pipeline's round trip to a server of the store, in seconds.", "server")
	for _, s := range st.Stats.Servers {
		to.series(queued, prometheus.GaugeValue, float64(s.Queued), s.Addr)
		to.series(inFlight, prometheus.GaugeValue, float64(s.InFlight), s.Addr)
		to.series(roundTrip, prometheus.GaugeValue, float64(s.RoundTripNs)/1e9, s.Addr)
	}
}
