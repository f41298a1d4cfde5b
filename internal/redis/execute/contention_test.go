package execute

import (
	"context"
	"slices"
	"testing"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
)

// TestContention: a last attempt holds the keys only if it is likely to be short.
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
		{name: "a longer script", scriptsMs: 4, limitMs: 50, snapshots: 13, held: true, leftMs: 5},
		{name: "a long script", scriptsMs: 12, limitMs: 50, snapshots: 5},
		{name: "a longer limit", scriptsMs: 12, limitMs: 200, snapshots: 17},
		{name: "a short limit", scriptsMs: 1, limitMs: 3, snapshots: 2, held: true, leftMs: 3},
		{name: "short commands", steps: 2_000_000, snapshots: 2, held: true},
		{name: "commands", steps: 4_000_000, snapshots: 32, held: true},
		{name: "long commands", steps: 10_000_000, snapshots: 32},
		{name: "very long commands", steps: 150_000_000, snapshots: 7},
		{name: "a second of commands", steps: 1_000_000_000, snapshots: 2},
		{name: "a short script among very long commands", steps: 150_000_000, scriptsMs: 1, limitMs: 50, snapshots: 7},
		{name: "a short script among commands", steps: 1_000_000, scriptsMs: 1, limitMs: 50, snapshots: 2, held: true, leftMs: 4},
		{name: "a short script among many", steps: 6_000_000, scriptsMs: 1, limitMs: 50, snapshots: 50},
	} {
		a := lua.Allowance{Limit: time.Duration(tt.limitMs) * ms}
		c := contention{Context: context.Background(), Steps: tt.steps, Scripts: &a}
		snapshots, mode := 0, transact.Snapshot
		for ; mode == transact.Snapshot && snapshots < 1000; mode = c.Next(snapshots) {
			snapshots++
			took := time.Duration(tt.scriptsMs) * ms
			a.Spent += min(took, a.Left())
			timedOut := a.Limit > 0 && a.Left() <= 0
			want := transact.Keep
			if timedOut {
				want = transact.Again
			}
			if got := c.Judge(attempted{TimedOut: timedOut, Ended: timedOut}); got != want {
				t.Errorf("%s: verdict on attempt %d: got %d, want %d", tt.name, snapshots, got, want)
			}
		}
		if snapshots != tt.snapshots || (mode == transact.Held) != tt.held {
			t.Errorf("%s: got %d snapshots and mode %d, want %d and held %v", tt.name, snapshots, mode, tt.snapshots, tt.held)
		}
		if tt.held && tt.limitMs > 0 && (!a.Held || a.Left() != time.Duration(tt.leftMs)*ms) {
			t.Errorf("%s: time left to scripts: got %s, want %d ms", tt.name, a.Left(), tt.leftMs)
		}
	}
}

// TestContentionGoesOn after attempts that held their keys for too long, fewer and fewer.
func TestContentionGoesOn(t *testing.T) {
	a := lua.Allowance{Limit: 50 * time.Millisecond}
	c := contention{Context: context.Background(), Scripts: &a}
	var modes []transact.Mode
	for n, mode := 1, transact.Snapshot; mode != transact.GiveUp && n < 100; n++ {
		timedOut := mode == transact.Held
		if a.Spent += time.Millisecond; timedOut {
			a.Spent = a.Limit
		}
		if c.Judge(attempted{TimedOut: timedOut, Ended: timedOut}) == transact.Drop {
			t.Fatalf("attempt %d: got Drop, want a contention error", n)
		}
		mode = c.Next(n)
		modes = append(modes, mode)
	}
	want := []transact.Mode{transact.Snapshot}
	for _, snapshots := range []int{5, 23, 5} {
		want = append(append(want, transact.Held), slices.Repeat([]transact.Mode{transact.Snapshot}, snapshots)...)
	}
	if want = append(want, transact.Held, transact.GiveUp); !slices.Equal(modes, want) {
		t.Errorf("modes: got %v, want %v", modes, want)
	}
}

func TestContentionOfAGoneClient(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end()
	if c := (contention{Context: ctx, Scripts: &lua.Allowance{}}); c.Next(1) != transact.GiveUp {
		t.Error("attempt for a gone client: got another, want none")
	}
}
