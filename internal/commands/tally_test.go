package commands_test

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/commands/rig"
)

// TestCommandsAreTimedToTheirEnd: one that is done aside as well, but for the pause of a failed login.
func TestCommandsAreTimedToTheirEnd(t *testing.T) {
	r := rig.New()
	r.Clock.StepBy(int64(time.Millisecond))
	s := r.Session()
	rig.Say(t, s, "CL.THROTTLE k 1 1 1\r\nEVAL 'return 1' 0\r\nDBSIZE\r\nPING\r\nCL.THROTTLE k 1 1 1\r\nCL.THROTTLE k 1 1 1\r\n")
	st := r.Engine.Records.Stats()
	for kind, want := range map[string]struct {
		count       uint64
		least, most time.Duration
	}{
		"cl.throttle": {3, 3 * time.Millisecond, 3 * time.Millisecond}, // the batch of 2 took 1, and so did its calls
		"script":      {1, time.Millisecond, 10 * time.Millisecond},
		"other":       {2, 2 * time.Millisecond, 10 * time.Millisecond},
	} {
		d := st.Durations[kind]
		if sum := time.Duration(d.SumNs); d.Count != want.count || sum < want.least || sum > want.most {
			t.Errorf("%s: %d took %s, want %d in %s to %s", kind, d.Count, sum, want.count, want.least, want.most)
		}
	}
	if got := r.Engine.Records.ThrottleDurations(); got.Count != 3 || got.Quantile(1) > 1100*time.Microsecond {
		t.Errorf("latency: %d, at most %s", got.Count, got.Quantile(1))
	}
	stats := rig.Say(t, s, "INFO commandstats\r\n")
	if !strings.Contains(stats, "cmdstat_cl.throttle:calls=3,usec=2000,usec_per_call=666.67,") || !strings.Contains(stats, "cmdstat_eval:calls=1,") {
		t.Errorf("commandstats: %s", stats)
	}
}

func TestALoginsPauseIsNoWork(t *testing.T) {
	r := rig.New()
	s := r.Session()
	rig.Say(t, s, "AUTH nobody wrong\r\n")
	if d := r.Engine.Records.Stats().Durations["other"]; d.Count != 1 || d.SumNs != 0 { // the clock stands still
		t.Errorf("%d took %d ns", d.Count, d.SumNs)
	}
}

func TestResetStatLeavesHistograms(t *testing.T) {
	r := rig.New()
	s := r.Session()
	rig.Say(t, s, "CL.THROTTLE k 1 1 1\r\nFOO\r\nCONFIG RESETSTAT\r\n")
	st := r.Engine.Records.Stats()
	if st.Calls["cl.throttle"] != 0 || st.Errors["ERR"] != 0 || st.Durations["cl.throttle"].Count != 1 || st.Batches.Count != 1 {
		t.Errorf("got %d calls, %d errors, %d durations, %d batches", st.Calls["cl.throttle"], st.Errors["ERR"],
			st.Durations["cl.throttle"].Count, st.Batches.Count)
	}
}
