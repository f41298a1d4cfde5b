package servers

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/test/redistest"
)

func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
}

// openCluster returns a cluster's servers once its slots are known.
func openCluster(t *testing.T, c *redistest.ClusterNodes, config Config) *Pool {
	t.Helper()
	config.URL = c.URL()
	p := open(t, config)
	ctx := patient(t)
	for p.ready(ctx) != nil {
		if !sleep(ctx, 10*time.Millisecond) {
			t.Fatal(p.ready(ctx))
		}
	}
	return p
}

func TestCluster(t *testing.T) {
	skipShort(t)
	c := redistest.Cluster(t)
	p := openCluster(t, c, Config{})
	ctx := patient(t)
	if !p.Clustered() || p.OneStep([]string{"a", "b"}) || !p.OneStep([]string{"{x}a", "b{x}{a}", "x"}) || !p.OneStep(nil) {
		t.Error("which keys have one slot is wrong")
	}
	for _, key := range []string{"", "a", "123456789", "{a}b", "{}b", "{b", "b{c}{d}", "}{", "\xff\x00"} {
		if want := c.Masters[0].Client().ClusterKeySlot(ctx, key).Val(); int64(p.Slot(key)) != want {
			t.Errorf("the slot of %q is %d, want %d", key, p.Slot(key), want)
		}
	}
	for i := range 300 {
		key := strconv.Itoa(i)
		call := &Call{Script: add, Keys: []string{key}, Args: []any{1}}
		if err := p.Do(ctx, key, call, 0); err != nil || call.Reply != int64(1) {
			t.Fatalf("%s: %v, %v", key, call.Reply, err)
		}
	}
	masters, err := p.Masters(ctx)
	if err != nil || len(masters) != 3 {
		t.Fatalf("the masters are %v, %v", masters, err)
	}
	sum := int64(0)
	for _, s := range masters {
		n, err := s.Client().DBSize(ctx).Result()
		if err != nil || n < 50 {
			t.Errorf("%s has %d keys, %v", s.Addr, n, err)
		}
		sum += n
		if s != p.At(s.Addr) {
			t.Errorf("there are two servers at %s", s.Addr)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = p.Of(ctx, "a") }); n != 0 {
		t.Errorf("finding a key's server allocates %v times", n)
	}
	if sum != 300 {
		t.Errorf("%d keys", sum)
	}
	for _, s := range p.Stats() {
		if s.Redirected != 0 {
			t.Errorf("%d calls went to %s first", s.Redirected, s.Addr)
		}
	}
}

// TestServersComeAndGo: closed clients are opened again, and servers that left are forgotten.
func TestServersComeAndGo(t *testing.T) {
	t.Parallel()
	skipShort(t)
	c := redistest.Cluster(t)
	p := openCluster(t, c, Config{})
	awaitCall(t, p)
	s, err := p.Of(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	closed := s.Client()
	_ = closed.Close() // as after a minute without slots
	call := &Call{Script: add, Keys: []string{"a"}, Args: []any{1}}
	p.Send(patient(t), s, []*Call{call}, 0)
	if failed := asFailed(call.Err); failed == nil || failed.Executed != No || !failed.Again() {
		t.Errorf("a closed client gives %+v", failed)
	}
	if p.Send(patient(t), s, []*Call{call}, 0); call.Err != nil || call.Reply != int64(1) || s.Client() == closed {
		t.Errorf("a server after its client was closed gives %v, %v", call.Reply, call.Err)
	}
	asked := p.At("127.0.0.1:1")
	if p.At("127.0.0.1:1") != asked {
		t.Error("one address is two servers")
	}
	known := len(p.Stats())
	p.forget(time.Since(p.start), time.Hour)
	if n := len(p.Stats()); n != known {
		t.Errorf("%d of %d servers are left, all of which were used within the hour", n, known)
	}
	p.forget(time.Since(p.start)+2*time.Hour, time.Hour)
	// the one without requests, and the one unknown to the cluster's client
	if n := len(p.Stats()); n != known-2 {
		t.Errorf("%d of %d servers are left", n, known)
	}
	if !p.Forgotten(asked) || !p.Forgotten(s) {
		t.Error("they are not forgotten")
	}
	for _, left := range p.Stats() {
		if left.Addr == asked.Addr || left.Addr == s.Addr {
			t.Errorf("%s is still there", left.Addr)
		}
	}
	if !isClosed(asked.Client()) {
		t.Error("it is not closed")
	}
	_ = p.Close()
	if failed := asFailed(p.Do(deadline(t, 100*time.Millisecond), "a", call, 0)); failed == nil || failed.Executed != No {
		t.Errorf("after Close: %+v", failed)
	}
	if !isClosed(p.At("127.0.0.1:2").Client()) {
		t.Error("a server is opened after Close")
	}
}

func TestNotReady(t *testing.T) {
	t.Parallel()
	skipShort(t)
	c := redistest.Cluster(t)
	p := openCluster(t, c, Config{})
	for _, node := range c.Masters {
		if err := node.Client().Do(t.Context(), "cluster", "delslotsrange", 100, 100).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := patient(t)
	for p.ready(ctx) == nil {
		if !sleep(ctx, 10*time.Millisecond) {
			t.Fatal("it is ready without a slot")
		}
	}
	if failed := asFailed(p.ready(ctx)); failed == nil || failed.Reason != Cluster {
		t.Errorf("without a slot: %+v", failed)
	}
	expectFails(t, p, "a", Cluster, No)
}

// load adds 1 to keys from several goroutines until stop, and returns what was certainly and perhaps added to
// each.
func load(t *testing.T, p *Pool, keys []string, stop <-chan struct{}) (wait func() (sure, perhaps map[string]*atomic.Int64)) {
	t.Helper()
	sure, perhaps := map[string]*atomic.Int64{}, map[string]*atomic.Int64{}
	for _, key := range keys {
		sure[key], perhaps[key] = &atomic.Int64{}, &atomic.Int64{}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := keys[i%len(keys)]
				ctx, cancel := context.WithTimeout(t.Context(), p.config.Timeout)
				err := p.Do(ctx, key, &Call{Script: add, Keys: []string{key}, Args: []any{1}}, 0)
				cancel()
				failed := asFailed(err)
				if err == nil {
					sure[key].Add(1)
				} else if failed.Executed == Maybe {
					perhaps[key].Add(1)
				}
			}
		})
	}
	return func() (_, _ map[string]*atomic.Int64) {
		wg.Wait()
		return sure, perhaps
	}
}

// TestMigration: each call is executed exactly once while a slot moves under load.
func TestMigration(t *testing.T) {
	t.Parallel()
	skipShort(t)
	c := redistest.Cluster(t)
	p := openCluster(t, c, Config{})
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprintf("{slot}%d", i))
	}
	ctx := patient(t)
	for _, key := range keys {
		if err := p.Do(ctx, key, &Call{Script: add, Keys: []string{key}, Args: []any{0}}, 0); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	wait := load(t, p, keys, stop)
	from, err := c.Master(ctx, "{slot}")
	if err != nil {
		t.Fatal(err)
	}
	first := from
	for _, to := range append(c.Masters[:len(c.Masters):len(c.Masters)], first) {
		if to == from {
			continue
		}
		m := c.MigrateSlot(int(p.Slot("{slot}")), from, to)
		if err := m.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		for moved := 1; moved > 0; {
			if moved, err = m.Move(ctx, 5); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond) // so that both have some, under load
		}
		if err := m.Finish(ctx); err != nil {
			t.Fatal(err)
		}
		from = to
	}
	close(stop)
	sure, perhaps := wait()
	asked := uint64(0)
	for _, s := range p.Stats() {
		asked += s.Redirected
	}
	for _, key := range keys {
		got, err := from.Client().Get(ctx, key).Int64()
		if err != nil || perhaps[key].Load() != 0 || got != sure[key].Load() {
			t.Errorf("%s is %d after %d calls, and %d that nobody knows of; %v", key, got, sure[key].Load(), perhaps[key].Load(), err)
		}
	}
	if asked == 0 {
		t.Error("nothing was sent elsewhere")
	}
}

// TestFailover: a key's master dies under load. Its replica is found without a restart, and certain and
// possible calls are told apart.
func TestFailover(t *testing.T) {
	t.Parallel()
	skipShort(t)
	c := redistest.Cluster(t, "--cluster-node-timeout", "1000")
	p := openCluster(t, c, Config{Timeout: time.Second})
	ctx := patient(t)
	master, err := c.Master(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	wait := load(t, p, []string{"a"}, stop)
	awaitCall(t, p)
	master.Kill()
	awaitChange(t, c, "a", master)
	awaitCall(t, p)
	close(stop)
	sure, perhaps := wait()
	promoted, err := c.Master(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := promoted.Client().Get(ctx, "a").Int64()
	// The replica may miss the master's last replies.
	t.Logf("%d calls were answered, %d perhaps executed, and the promoted replica has %d", sure["a"].Load(), perhaps["a"].Load(), got)
	if err != nil || got > sure["a"].Load()+perhaps["a"].Load() {
		t.Errorf("calls were executed twice, or %v", err)
	}
}

// awaitCall waits for an answered call.
func awaitCall(t *testing.T, p *Pool) {
	t.Helper()
	ctx := patient(t)
	for {
		try, cancel := context.WithTimeout(ctx, p.config.Timeout)
		err := p.Do(try, "a", &Call{Script: NewScript(`return redis.call('GET', KEYS[1])`), Keys: []string{"a"}}, 0)
		cancel()
		if err == nil {
			return
		}
		if !sleep(ctx, time.Millisecond) {
			t.Fatal(err)
		}
	}
}

func awaitChange(t *testing.T, c *redistest.ClusterNodes, key string, old *redistest.Process) {
	t.Helper()
	ctx := patient(t)
	for {
		if now, err := c.Master(ctx, key); err == nil && now != old {
			return
		}
		if !sleep(ctx, 20*time.Millisecond) {
			t.Fatal("no replica was promoted")
		}
	}
}

// TestStandingMaster: a stopped master is replaced as well.
func TestStandingMaster(t *testing.T) {
	t.Parallel()
	skipShort(t)
	c := redistest.Cluster(t, "--cluster-node-timeout", "1000")
	p := openCluster(t, c, Config{Timeout: time.Second})
	master, err := c.Master(patient(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	awaitCall(t, p)
	master.Stop()
	defer master.Continue()
	failed := asFailed(p.Do(t.Context(), "a", &Call{Script: add, Keys: []string{"a"}, Args: []any{1}}, 0))
	if failed == nil || failed.Reason != Timeout || failed.Executed != Maybe {
		t.Errorf("a server that stands still gives %+v", failed)
	}
	awaitCall(t, p)
}
