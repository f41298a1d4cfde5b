package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
	sliding "cellserver/internal/limiter/window"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// life is a persisted store between start and end.
type life struct {
	*Keeper
	store *shard.Store
	ids   uint64 // of the last lease
	lines *bytes.Buffer
	ended chan error
	stop  context.CancelFunc
}

func nowNs() int64 { return time.Now().UnixNano() }

// beginLife starts a life and waits until clients would be served or it has ended.
func beginLife(dir disk.Dir, change func(*Config)) *life {
	l := &life{store: shard.New(), lines: &bytes.Buffer{}, ended: make(chan error, 1)}
	c := Config{Dir: dir, Store: l.store, Now: nowNs, Interval: time.Second, Log: slog.New(slog.NewTextHandler(l.lines, nil))}
	if change != nil {
		change(&c)
	}
	l.Keeper = New(c)
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	ready := make(chan struct{})
	go func() { l.ended <- l.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-l.ended:
		l.ended <- err
	}
	return l
}

func (l *life) end() error {
	l.stop()
	return <-l.ended
}

func endAll(t *testing.T, lives ...*life) {
	t.Helper()
	for _, l := range lives {
		if err := l.end(); err != nil {
			t.Error(err)
		}
	}
}

// afterCrash begins a life in what a crash leaves of a directory.
func afterCrash(dir *disktest.Dir) *life {
	return beginLife(dir.Crash(rand.New(rand.NewPCG(1, 1))), nil)
}

// slowLogs makes syncs of logs take ten seconds.
func slowLogs(op disktest.Op, name string) error {
	if op == disktest.Sync && strings.HasPrefix(name, "log-") {
		time.Sleep(10 * time.Second)
	}
	return nil
}

// charge takes from each key, whatever the result.
func (l *life) charge(names ...string) {
	for _, name := range names {
		_, _ = l.take(name)
	}
}

// save waits for a snapshot.
func (l *life) save() error {
	saved := make(chan error, 1)
	if err := l.Save(func(err error) { saved <- err }); err != nil {
		return err
	}
	return <-saved
}

// take charges a key one unit and returns tat's result. Prefixes select other limiters.
func (l *life) take(name string) (tatNs int64, err error) {
	key := store.Key{Name: []byte(name)}
	if strings.HasPrefix(name, leasesOf) {
		l.ids++
		o := limiter.Operation{Verb: limiter.Acquire, Max: 100, ID: l.ids, TTLNs: int64(time.Hour)}
		err := l.store.Apply(nowNs(), key, &o)
		return l.tat(name), err
	}
	limit, err := funnel.NewLimit(funnel.Burst, 1<<20, 1, 3600)
	if err != nil {
		return 0, err
	}
	windows, err := sliding.NewExactLimit(funnel.Seconds, sliding.MaxExact, 3600)
	if err != nil {
		return 0, err
	}
	rule := limiter.Rule{Funnel: limit, Packed: windows.Packed()}
	switch {
	case strings.HasPrefix(name, windowsOf):
		rule.Kind = limiter.FixedWindow
	case strings.HasPrefix(name, ringsOf):
		rule.Kind = limiter.SlidingWindow
	}
	batch := []store.Request{{Key: key, Rule: rule, Quantity: 1}}
	l.store.Throttle(nowNs(), batch)
	return l.tat(name), batch[0].Err
}

// Prefixes of names: windows change counts and not times, rings grow, and leases.
const windowsOf, ringsOf, leasesOf = "window:", "ring:", "lease:"

// tat returns a funnel's TAT, a checksum of another limiter's state, and 0 for an absent key.
func (l *life) tat(name string) int64 {
	s, ok, _ := l.store.State(nowNs(), store.Key{Name: []byte(name)})
	switch {
	case !ok:
		return 0
	case s.Kind == limiter.Funnel:
		return s.ExpiresNs
	}
	return int64(crc32.ChecksumIEEE(limiter.AppendState(nil, &s)))
}

// del reports whether the key is not there now, rather than refused.
func (l *life) del(name string) bool {
	_, err := l.store.Delete(nowNs(), []store.Key{{Name: []byte(name)}})
	return err == nil
}

// syncNow waits until all is on the disk.
func (l *life) syncNow() {
	done := make(chan struct{})
	l.Sync(func() { close(done) })
	<-done
}

// histories are keys' states since the last sync, the latest last.
type histories map[string][]state

type state struct {
	tatNs int64
	n     int // distinguishes states of the same TAT
}

func (h histories) note(name string, tatNs int64) {
	if len(h[name]) == 0 {
		h[name] = []state{{}}
	}
	h[name] = append(h[name], state{tatNs, h[name][len(h[name])-1].n + 1})
}

func (h histories) has(name string, tatNs int64) bool {
	return slices.ContainsFunc(h[name], func(s state) bool { return s.tatNs == tatNs })
}

func (h histories) confirm() {
	for name, had := range h {
		h[name] = had[len(had)-1:]
	}
}

func (h histories) clone() histories {
	c := histories{}
	for name, had := range h {
		c[name] = slices.Clone(had)
	}
	return c
}

// TestCrashesOfAServer: after any crash and failure, no key has a state older than the last confirmed sync.
// An orderly end loses nothing.
func TestCrashesOfAServer(t *testing.T) {
	for round := range 60 {
		synctest.Test(t, func(t *testing.T) { crashOften(t, rand.New(rand.NewPCG(5, uint64(round)))) })
	}
}

func crashOften(t *testing.T, rng *rand.Rand) {
	dir, had := disktest.New(), histories{}
	for range 5 {
		trouble := &trouble{dir: dir, rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), fails: rng.IntN(3) == 0, left: 5 + rng.IntN(150), had: had}
		dir.Before = trouble.before
		l := beginLife(dir, func(c *Config) {
			c.Interval = []time.Duration{0, time.Second, store.NoSync}[rng.IntN(3)]
			c.LeastLogBytes = 4 << 10
		})
		if err := l.alive(); err != nil {
			t.Fatal(err)
		}
		trouble.do(func(had histories) {
			for name, was := range had {
				tatNs := l.tat(name)
				if !had.has(name, tatNs) {
					t.Fatalf("%s is %d, and was %d", name, tatNs, was)
				}
				had[name] = []state{{tatNs: tatNs}}
			}
		})
		for trouble.crashed() == nil {
			use(l, rng, trouble)
		}
		switch left := trouble.crashed(); {
		case rng.IntN(4) == 0:
			trouble.heal()
			endAll(t, l)
			had, dir = trouble.had, dir.Crash(rng)
			had.confirm()
		default:
			_ = l.end() // the crash came before
			had, dir = trouble.remains(left)
		}
	}
}

// use does something that a server does.
func use(l *life, rng *rand.Rand, tr *trouble) {
	kind := []string{"", windowsOf, ringsOf, leasesOf}[rng.IntN(4)]
	name := fmt.Sprintf("%s%0*d", kind, 1+rng.IntN(30), rng.IntN(10))
	switch n := rng.IntN(40); {
	case n < 28:
		tr.do(func(had histories) {
			if tatNs, err := l.take(name); err == nil {
				had.note(name, tatNs)
			}
		})
	case n < 33:
		tr.do(func(had histories) {
			if l.del(name) {
				had.note(name, 0)
			}
		})
	case n == 33:
		tr.do(func(had histories) {
			l.store.FlushAll()
			for name := range had {
				had.note(name, 0)
			}
		})
	case n == 34:
		_ = l.Save(func(error) {}) // which may fail
	case n < 37:
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
	default:
		tr.mu.Lock()
		asked := tr.had.clone()
		tr.mu.Unlock()
		l.Sync(func() { tr.confirm(asked) })
		synctest.Wait()
	}
}

func (l *life) alive() error {
	select {
	case err := <-l.ended:
		return fmt.Errorf("it has ended: %w", err)
	default:
		return nil
	}
}

// trouble makes operations fail, and then crashes.
type trouble struct {
	dir   *disktest.Dir
	rng   *rand.Rand
	fails bool
	left  int // operations until the crash

	mu     sync.Mutex
	had    histories
	then   histories
	crash  *disktest.Dir
	healed bool
	bad    int // operations that still fail
}

var errDisk = errors.New("no space left on device")

func (tr *trouble) before(disktest.Op, string) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.healed {
		return nil
	}
	if tr.left--; tr.left == 0 {
		tr.crash, tr.then = tr.dir.Crash(tr.rng), tr.had.clone()
	}
	if tr.fails && tr.bad == 0 && tr.rng.IntN(10) == 0 {
		tr.bad = 1 + tr.rng.IntN(5)
	}
	if tr.bad > 0 {
		tr.bad--
		return errDisk
	}
	return nil
}

func (tr *trouble) heal() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.healed = true
}

func (tr *trouble) crashed() *disktest.Dir {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.crash
}

func (tr *trouble) remains(left *disktest.Dir) (histories, *disktest.Dir) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.then, left
}

// do changes the store and the histories together, without a crash in between.
func (tr *trouble) do(change func(had histories)) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	change(tr.had)
}

// confirm records a sync.
func (tr *trouble) confirm(asked histories) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for name, was := range asked {
		if i := slices.Index(tr.had[name], was[len(was)-1]); i > 0 {
			tr.had[name] = tr.had[name][i:]
		}
	}
}

// TestTheDiskIsFull: with an interval all goes on, and changes are kept once there is space.
func TestTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, full := disktest.New(), false
		var mu sync.Mutex
		set := func(on bool) {
			mu.Lock()
			defer mu.Unlock()
			full = on
		}
		dir.Before = func(op disktest.Op, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			if full && op == disktest.Write {
				return errDisk
			}
			return nil
		}
		l := beginLife(dir, nil)
		l.charge("before")
		l.syncNow()
		set(true)
		l.charge("while")
		time.Sleep(time.Minute)
		if st := l.Status(); !errors.Is(st.Fault, errDisk) || st.Faults != 1 || nowNs()-st.FaultSinceNs < int64(50*time.Second) {
			t.Errorf("the status is %+v", st)
		}
		if l.Gate().Refusal() != nil {
			t.Error("calls are refused")
		}
		set(false)
		time.Sleep(mostRetry + time.Second)
		if st := l.Status(); st.Fault != nil || st.SnapshotBytes == 0 {
			t.Errorf("with room again, the status is %+v", st)
		}
		again := afterCrash(dir)
		if again.tat("before") != l.tat("before") || again.tat("while") != l.tat("while") || l.tat("while") == 0 {
			t.Error("data was lost")
		}
		endAll(t, l, again)
		if lines := l.lines.String(); strings.Count(lines, "cannot be written") != 1 || strings.Count(lines, "kept again") != 1 {
			t.Errorf("the log is %s", lines)
		}
	})
}

// TestTheDiskIsFullAndRepliesWait: changes are refused, and waiting replies are answered in the end.
func TestTheDiskIsFullAndRepliesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		tr := &trouble{dir: dir, rng: rand.New(rand.NewPCG(1, 2)), left: 1 << 30}
		dir.Before = tr.before
		l := beginLife(dir, func(c *Config) { c.Interval = 0 })
		l.charge("before")
		l.syncNow()
		tr.mu.Lock()
		tr.bad = 20
		tr.mu.Unlock()
		first, _ := l.take("first")
		confirmed := make(chan struct{})
		l.Sync(func() { close(confirmed) })
		synctest.Wait()
		if _, err := l.take("second"); !errors.Is(err, store.ErrFrozen) || l.tat("second") != 0 || l.Gate().Refusal() == nil || l.Status().WaitingReplies != 1 {
			t.Errorf("got %v, and the status %+v", err, l.Status())
		}
		<-confirmed
		synctest.Wait()
		if _, err := l.take("second"); err != nil || l.Gate().Refusal() != nil {
			t.Error(err)
		}
		again := afterCrash(dir)
		if again.tat("first") != first || again.tat("before") == 0 {
			t.Error("confirmed data was lost")
		}
		endAll(t, l, again)
	})
}

// TestASlowSync: a sync of ten seconds delays only its callers, and too many deletions cost a snapshot, not a
// key.
func TestASlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		dir.Before = slowLogs
		l := beginLife(dir, nil)
		for i := range 200_000 {
			l.charge(fmt.Sprint("key:", i))
		}
		l.syncNow()
		l.charge("wakes the sync")
		time.Sleep(2 * time.Second)
		before := time.Now()
		for i := range 150_000 {
			l.del(fmt.Sprint("key:", i))
		}
		if time.Since(before) > 0 {
			t.Error("a client waited")
		}
		l.syncNow()
		again := afterCrash(dir)
		if n := again.Status().LoadedKeys; n != 50_001 {
			t.Errorf("%d keys are loaded", n)
		}
		endAll(t, l, again)
		if !strings.Contains(l.lines.String(), "more were deleted at once than are listed") {
			t.Error("all deletions were listed; then this test needs more of them")
		}
	})
}

// TestCompaction: logs are bounded, and expired keys are not written again.
func TestCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, func(c *Config) { c.LeastLogBytes = 4 << 10 })
		for i := range 100 {
			for j := range 100 {
				l.charge(fmt.Sprint(j))
			}
			if i == 60 {
				for j := range 50 {
					l.del(fmt.Sprint(j))
				}
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second / 2) // no round and no snapshot is under way
		st := l.Status()
		if st.Saves < 5 || st.LogBytes > 10<<10 || st.SnapshotBytes > 4<<10 {
			t.Errorf("the status is %+v", st)
		}
		names, err := dir.List()
		if err != nil || len(names) > 4 {
			t.Errorf("there are %v, %v", names, err)
		}
		time.Sleep(101 * time.Hour) // all funnels are empty
		if err := l.save(); err != nil || l.Status().SnapshotBytes != fileHeaderBytes {
			t.Errorf("%v, the snapshot has %d bytes", err, l.Status().SnapshotBytes)
		}
		endAll(t, l)
	})
}

// TestDamagedDirectory: damage is refused and preserved; with Repair the rest is loaded and the files are
// kept.
func TestDamagedDirectory(t *testing.T) {
	for name, damage := range map[string]func(dir *disktest.Dir){
		"a flipped bit in a log":      func(dir *disktest.Dir) { dir.Contents(logName(2))[fileHeaderBytes+50] ^= 1 },
		"a flipped bit in a snapshot": func(dir *disktest.Dir) { dir.Contents(snapshotName(2))[fileHeaderBytes+50] ^= 1 },
		"a short snapshot": func(dir *disktest.Dir) {
			b := dir.Contents(snapshotName(2))
			dir.SetContents(snapshotName(2), b[:len(b)-1])
		},
		"an empty log":      func(dir *disktest.Dir) { dir.SetContents(logName(2), nil) },
		"an empty manifest": func(dir *disktest.Dir) { dir.SetContents(manifestName, nil) },
		"swapped files": func(dir *disktest.Dir) {
			a, b := dir.Contents(snapshotName(2)), dir.Contents(logName(2))
			dir.SetContents(snapshotName(2), b)
			dir.SetContents(logName(2), a)
		},
		"no manifest": func(dir *disktest.Dir) { _ = dir.Remove(manifestName) }, // it is there
		"no snapshot": func(dir *disktest.Dir) { _ = dir.Remove(snapshotName(2)) },
		"a manifest of another directory": func(dir *disktest.Dir) {
			dir.SetContents(manifestName, (&manifest{logs: []fileEntry{{2, 7, -1}}}).text())
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := disktest.New()
			l := beginLife(dir, nil)
			for i := range 10 {
				l.charge(fmt.Sprint("snapshot", i))
			}
			if err := l.save(); err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				l.charge(fmt.Sprint("log", i))
				l.syncNow()
			}
			endAll(t, l)
			damage(dir)
			before, _ := dir.List()
			refused := beginLife(dir, nil)
			if err := <-refused.ended; !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "--data-recover") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s: %v", name, err)
			}
			if after, _ := dir.List(); !slices.Equal(before, after) {
				t.Fatalf("%s: %v became %v", name, before, after)
			}
			repaired := beginLife(dir, func(c *Config) { c.Repair = true })
			if err := repaired.alive(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			keys := repaired.Status().LoadedKeys
			if keys < 9 {
				t.Errorf("%s: %d keys are left", name, keys)
			}
			repaired.syncNow()
			if err := repaired.end(); err != nil {
				t.Fatal(err)
			}
			names, _ := dir.List()
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "damaged-") }) {
				t.Errorf("%s: only %v are left", name, names)
			}
			again := beginLife(dir, nil)
			if err := again.alive(); err != nil || again.Status().LoadedKeys != keys {
				t.Errorf("%s: then %d keys, %v", name, again.Status().LoadedKeys, err)
			}
			endAll(t, again)
		})
	}
}

// TestEndWhileLoading changes nothing.
func TestEndWhileLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		l := beginLife(dir, nil)
		l.charge("a")
		endAll(t, l)
		before, _ := dir.List()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		k := New(Config{Dir: dir, Store: shard.New(), Now: nowNs, Log: slog.New(slog.DiscardHandler)})
		if err := k.Run(ctx, func() { t.Error("it is ready") }); err != nil || !k.Loading() {
			t.Error(err)
		}
		if after, _ := dir.List(); !slices.Equal(before, after) {
			t.Errorf("%v became %v", before, after)
		}
	})
}
