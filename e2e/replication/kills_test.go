package replication

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
	"cellserver/internal/test/processtest"
)

// TestKillsAroundAChange: whichever server is killed at any time from the beginning of a planned change, and
// is started again as it was, nothing that was promised is gone. `soak changes` has more kills.
func TestKillsAroundAChange(t *testing.T) {
	t.Parallel()
	const kills = 12
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range kills {
		after := time.Duration(i*i)*16*time.Millisecond + time.Duration(rng.Int64N(int64(20*time.Millisecond))) // most of them early
		interval, killed, byPeer := []string{"1s", "0"}[i/2%2], 1-i%2, i%3 == 0
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := changeOf(t, interval, byPeer)
			c.Killed, c.After = killed, after
			found, err := c.Do(t.Context())
			if err != nil || len(found.Wrong) > 0 || found.Leaders == 0 {
				t.Errorf("server %d is killed after %s, interval %s, by --peer: %t, seed %d: %+v, %v", killed, after, interval, byPeer, seed, found, err)
			}
		})
	}
}

// changeOf returns a change of a pair's leader.
func changeOf(t *testing.T, interval string, byPeer bool) killtest.Change {
	t.Helper()
	c := killtest.Change{EachReply: interval == "0"}
	at := [2]string{processtest.FreeAddr(t), processtest.FreeAddr(t)}
	dirs := [2]string{t.TempDir(), t.TempDir()}
	c.Start = func(_ context.Context, server int) (killtest.Running, error) {
		args := []string{"--addr", at[server], "--fsync-interval", interval}
		switch {
		case byPeer:
			args = append(args, "--peer", at[1-server], "--peer-wait", "100ms")
		case server == 1:
			args = append(args, "--replica-of", at[0])
		}
		p := harness.StartKeeping(t, dirs[server], args...)
		return killtest.Running{Addr: p.Addr, Kill: func() { p.Stop(t, syscall.SIGKILL) }}, nil
	}
	return c
}
