package session

import (
	"context"
	"testing"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/transact"
)

// TestContention: attempts until the time is spent, and one that others wait for only where that is likely to be short.
func TestContention(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name      string
		steps     int
		scriptsMs int64 // that an attempt takes
		limitMs   int64 // 0 without scripts
		snapshots int   // attempts
		held      bool  // and then one more
		leftMs    int64 // for its scripts
	}{
		{name: "a short script", scriptsMs: 1, limitMs: 50, snapshots: 2, held: true, leftMs: 5},
		{name: "a script that is not so short", scriptsMs: 4, limitMs: 50, snapshots: 13, held: true, leftMs: 5},
		{name: "a long script", scriptsMs: 12, limitMs: 50, snapshots: 5},
		{name: "a longer limit", scriptsMs: 12, limitMs: 200, snapshots: 17},
		{name: "a short limit", scriptsMs: 1, limitMs: 3, snapshots: 2, held: true, leftMs: 3},
		{name: "short commands", steps: 2_000_000, snapshots: 2, held: true},
		{name: "commands", steps: 4_000_000, snapshots: 63, held: true},
		{name: "long commands", steps: 10_000_000, snapshots: 26},
		{name: "a short script among commands", steps: 1_000_000, scriptsMs: 1, limitMs: 50, snapshots: 2, held: true, leftMs: 4},
		{name: "a short script among many", steps: 6_000_000, scriptsMs: 1, limitMs: 50, snapshots: 42},
	} {
		a := lua.Allowance{Limit: time.Duration(tt.limitMs) * ms}
		c := contention{ctx: context.Background(), steps: tt.steps, scripts: &a}
		snapshots, mode := 0, transact.Snapshot
		for ; mode == transact.Snapshot && snapshots < 1000; mode = c.next(snapshots) {
			snapshots++
			took := time.Duration(tt.scriptsMs) * ms
			a.Spent += min(took, a.Left())
			timedOut := a.Limit > 0 && a.Left() <= 0
			want := transact.Keep
			if timedOut {
				want = transact.Again
			}
			if got := c.judge(attempted{timedOut: timedOut, ended: timedOut}); got != want {
				t.Errorf("%s: attempt %d is judged %d, want %d", tt.name, snapshots, got, want)
			}
		}
		if snapshots != tt.snapshots || (mode == transact.Held) != tt.held {
			t.Errorf("%s: %d snapshots, and then %d", tt.name, snapshots, mode)
		}
		if tt.held && tt.limitMs > 0 && (!a.Held || a.Left() != time.Duration(tt.leftMs)*ms) {
			t.Errorf("%s: %s are left to its scripts", tt.name, a.Left())
		}
		if tt.held && c.next(snapshots+1) != transact.GiveUp {
			t.Errorf("%s: another attempt behind that", tt.name)
		}
	}
	ctx, end := context.WithCancel(context.Background())
	end()
	if c := (contention{ctx: ctx, scripts: &lua.Allowance{}}); c.next(1) != transact.GiveUp {
		t.Error("another attempt for a client that is gone")
	}
}
