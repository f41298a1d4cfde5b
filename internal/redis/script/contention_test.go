package script

import (
	"context"
	"slices"
	"testing"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
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
		c := Contention{Context: context.Background(), Steps: tt.steps, Scripts: &a}
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
			if got := c.Judge(Attempted{TimedOut: timedOut, Ended: timedOut}); got != want {
				t.Errorf("%s: attempt %d is judged %d, want %d", tt.name, snapshots, got, want)
			}
		}
		if snapshots != tt.snapshots || (mode == transact.Held) != tt.held {
			t.Errorf("%s: %d snapshots, and then %d", tt.name, snapshots, mode)
		}
		if tt.held && tt.limitMs > 0 && (!a.Held || a.Left() != time.Duration(tt.leftMs)*ms) {
			t.Errorf("%s: %s are left to its scripts", tt.name, a.Left())
		}
	}
}

// TestContentionGoesOn: where the attempt that others wait for takes too long, what is left of the time is not lost.
func TestContentionGoesOn(t *testing.T) {
	const ms = time.Millisecond
	a := lua.Allowance{Limit: 50 * ms, Hint: "own"}
	c := Contention{Context: context.Background(), Scripts: &a}
	var held []int // how many attempts came before
	n, mode := 0, transact.Snapshot
	for ; mode != transact.GiveUp && n < 1000; mode = c.Next(n) {
		n++
		timedOut := mode == transact.Held
		if timedOut {
			held = append(held, n-1)
			a.Spent = a.Limit
		} else {
			a.Spent += ms
		}
		if c.Judge(Attempted{TimedOut: timedOut, Ended: timedOut}) == transact.Drop {
			t.Fatalf("attempt %d is the last", n)
		}
	}
	if want := []int{2, 8, 32, 38}; !slices.Equal(held, want) || n != 39 {
		t.Errorf("others waited for those of %d attempts behind %v, want %v", n, held, want)
	}
	if a.Held || a.Hint != "own" || a.Spent != 55*ms {
		t.Errorf("in the end the allowance is %+v", a)
	}
}

func TestContentionOfAClientThatIsGone(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	end()
	if c := (Contention{Context: ctx, Scripts: &lua.Allowance{}}); c.Next(1) != transact.GiveUp {
		t.Error("another attempt for a client that is gone")
	}
}
