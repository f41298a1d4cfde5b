package durability

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
)

// killLoad is the load of the tests that kill a server.
func killLoad(random *rand.Rand, eachReply bool) *killtest.Load {
	return killtest.New(killtest.Config{Clients: 6, Keys: 2000, EachReply: eachReply, Seed: random.Uint64()})
}

// sleepUpTo sleeps for a random time.
func sleepUpTo(most time.Duration, random *rand.Rand) {
	time.Sleep(time.Duration(random.Int64N(int64(most))))
}

// checkLoad reports keys in a state that the load does not explain.
func checkLoad(t *testing.T, load *killtest.Load, p *harness.Process) (found killtest.Found) {
	t.Helper()
	found, err := load.Check(t.Context(), p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range found.Wrong {
		if i == 10 {
			t.Errorf("and %d keys more", len(found.Wrong)-i)
			break
		}
		t.Error(line)
	}
	return found
}

// endLoad ends a server under load and reports wrong replies before.
func endLoad(t *testing.T, run *killtest.Run, p *harness.Process, sig syscall.Signal) (code int) {
	t.Helper()
	for _, line := range run.End(func() { code = p.Stop(t, sig) }) {
		t.Error(line)
	}
	return code
}

// TestLoadNoticesLosses: the check finds the losses of a server without its data.
func TestLoadNoticesLosses(t *testing.T) {
	t.Parallel()
	load := killLoad(randtest.New(t), true)
	p := harness.StartKeeping(t, t.TempDir())
	run := load.Begin(t.Context(), p.Addr)
	patience.Until(func() bool { return load.Confirmed() > 100 })
	for _, line := range run.Pause() {
		t.Error(line)
	}
	if found := checkLoad(t, load, p); found.Confirmed == 0 || found.Unsure != 0 {
		t.Errorf("%+v", found)
	}
	run = load.Begin(t.Context(), p.Addr)
	patience.Until(func() bool { return load.Confirmed() > 100 })
	endLoad(t, run, p, syscall.SIGKILL)
	found, err := load.Check(t.Context(), harness.StartKeeping(t, t.TempDir()).Addr)
	if err != nil || len(found.Wrong) == 0 { // how many depends on how many calls there was time for
		t.Errorf("%d of %d keys are lost: %v", len(found.Wrong), found.Keys, err)
	}
}

// TestKills kills a server at random moments under load. Keys are no older than the last confirmed sync, or
// reply with an interval of 0, and have only requested changes.
func TestKills(t *testing.T) {
	t.Parallel()
	kills := 6
	if testing.Short() {
		kills = 2
	}
	for _, interval := range []string{"1s", "0"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			racetest.OneAtATime(t)
			dir, random := t.TempDir(), randtest.New(t)
			load := killLoad(random, interval == "0")
			var sum killtest.Found
			for round := range kills {
				p := harness.StartKeeping(t, dir, "--fsync-interval", interval)
				found := checkLoad(t, load, p)
				t.Logf("kill %d: %d calls to be kept, %d later ones; of %d keys %d have one of these", round, found.Confirmed, found.Unsure, found.Keys, found.Survived)
				sum.Confirmed += found.Confirmed
				run := load.Begin(t.Context(), p.Addr)
				sleepUpTo(2500*time.Millisecond, random)
				if round == kills-1 && sum.Confirmed == 0 { // all kills may come before the first sync
					patience.Until(func() bool { return load.Confirmed() > 0 })
				}
				endLoad(t, run, p, syscall.SIGKILL)
				if random.IntN(2) == 0 {
					killAtStart(t, dir, interval, random)
				}
				if t.Failed() {
					return
				}
			}
			found := checkLoad(t, load, harness.StartKeeping(t, dir, "--fsync-interval", interval))
			if sum.Confirmed += found.Confirmed; sum.Confirmed == 0 {
				t.Error("nothing was confirmed")
			}
		})
	}
}

// killAtStart kills a server that is loading, beginning a log, or serving.
func killAtStart(t *testing.T, dir, interval string, random *rand.Rand) {
	t.Helper()
	p := harness.Start(t, harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", "", "--data-dir", dir, "--fsync-interval", interval))
	sleepUpTo(200*time.Millisecond, random)
	p.Stop(t, syscall.SIGKILL)
}

// TestSIGTERMLosesNothing: answered changes survive SIGTERM, also during a snapshot.
func TestSIGTERMLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	for _, interval := range []string{"1s", "no", "0"} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			racetest.OneAtATime(t)
			dir, random := t.TempDir(), randtest.New(t)
			load := killLoad(random, interval == "0")
			p, confirmed := harness.StartKeeping(t, dir, "--fsync-interval", interval), 0
			for round := range 4 {
				run := load.Begin(t.Context(), p.Addr)
				time.Sleep(100 * time.Millisecond)
				sleepUpTo(400*time.Millisecond, random)
				if round > 1 {
					harness.SayTo(t, p.Dial(t), "BGSAVE\r\n", "\r\n") // unless a client has just had that
				}
				if code := endLoad(t, run, p, syscall.SIGTERM); code != 0 {
					t.Errorf("it ended with %d", code)
				}
				load.ConfirmReplied()
				p = harness.StartKeeping(t, dir, "--fsync-interval", interval)
				confirmed += checkLoad(t, load, p).Confirmed
			}
			if confirmed == 0 { // a round may end before its first reply
				t.Error("nothing was confirmed")
			}
		})
	}
}
