package admin

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// infoStore describes a store on other machines.
func infoStore(t *infoText) {
	st := t.Remote()
	t.fields("store", st.Store, "store_status", storeStatus(&st), "store_masters", st.Masters, "store_masters_up", st.Up,
		"store_since", st.SinceNs/int64(time.Second), "store_on_error", st.Policy)
	if st.Fault != nil {
		t.field("store_fault", resp.PrintableN([]byte(st.Fault.Error()), maxReasonBytes))
	}
	s := &st.Stats
	t.fields("store_requests", s.Requests, "store_asked", s.Asked, "store_joined", s.Joined, "store_prefiltered", s.Prefiltered,
		"store_scripts", s.Scripts, "store_pipelines", s.Pipelines, "store_waiting", s.Waiting,
		"store_late_answers", s.Late, "store_keys", st.Keys)
	for _, p := range slices.Sorted(maps.Keys(s.Policy)) {
		if n := s.Policy[p]; n.Total() > 0 || p == st.Policy {
			t.field("store_decided_by_"+p.String(), fmt.Sprintf("allowed=%d,denied=%d,errors=%d", n.Allowed, n.Limited, n.Failed))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Failed)) {
		if s.Failed[reason] > 0 {
			t.field("store_failures_"+string(reason), s.Failed[reason])
		}
	}
	for i, server := range s.Servers {
		name := fmt.Sprintf("store_server%d", i)
		t.field(name, fmt.Sprintf("addr=%s,circuit=%s,queued=%d,in_flight=%d,round_trip_usec=%d,connections=%d,scripts_loaded=%d,redirected=%d",
			server.Addr, server.Circuit, server.Queued, server.InFlight, server.RoundTripNs/int64(time.Microsecond),
			server.Conns, server.Loaded, server.Redirected))
		for _, reason := range slices.Sorted(maps.Keys(server.Failed)) {
			if server.Failed[reason] > 0 {
				t.field(name+"_failures_"+string(reason), server.Failed[reason])
			}
		}
		if server.Error != "" {
			t.field(name+"_error", resp.PrintableN([]byte(server.Error), maxReasonBytes))
		}
	}
}

func storeStatus(st *store.Health) string {
	switch {
	case !st.Asked:
		return "connecting"
	case st.Away():
		return "away"
	case st.Fault != nil:
		return "partly_away"
	}
	return "ok"
}
