package replication

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

const funnelPeriod = 3_600_000 // seconds, so that nothing drains meanwhile

// writers change a server's keys of all kinds until they are stopped.
type writers struct {
	wg    sync.WaitGroup
	stop  chan struct{}
	calls atomic.Int64
}

func startWriters(t *testing.T, s *server, clients, keys int) *writers {
	t.Helper()
	w := &writers{stop: make(chan struct{})}
	for c := range clients {
		rng := rand.New(rand.NewPCG(uint64(c), 1))
		w.wg.Go(func() {
			for {
				pipe := s.rdb.Pipeline()
				for range 50 {
					pipe.Do(t.Context(), write(rng, keys)...)
				}
				if _, err := pipe.Exec(t.Context()); err != nil && !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Error(err)
					return
				}
				w.calls.Add(50)
				select {
				case <-w.stop:
					return
				default:
				}
			}
		})
	}
	return w
}

func (w *writers) end() {
	close(w.stop)
	w.wg.Wait()
}

// write returns a random change.
func write(rng *rand.Rand, keys int) []any {
	i := rng.IntN(keys)
	key := fmt.Sprint("key", i)
	switch n := rng.IntN(20); {
	case n == 0:
		return call("DEL", key, "count"+key, "text"+key)
	case n == 1:
		return call("CL.LIMIT", "OVERRIDE", "named", key, "FUNNEL", 1+i, 1, 60)
	case n == 2:
		return call("PEXPIRE", key, funnelPeriod*1000+i)
	case n == 3:
		return call("INCRBY", "count"+key, i)
	case n == 4 && i%50 == 0:
		return call("SET", "text"+key, strings.Repeat(key, 64<<10/len(key)), "EX", funnelPeriod)
	case n == 4:
		return call("SET", "text"+key, key)
	case n == 5:
		return call("EXPIRE", "count"+key, funnelPeriod)
	case i%5 == 0:
		return call("CL.SLIDINGWINDOW", key, 1000, funnelPeriod)
	case i%5 == 1:
		return call("CL.FIXEDWINDOW", key, 1000, funnelPeriod)
	case i%5 == 2:
		return call("CL.CONCURRENCY", "ACQUIRE", key, 1000, funnelPeriod*1000, fmt.Sprint("holder", n))
	case i%5 == 3:
		return call("CL.BUCKET", "ADD", key, 1000, 1)
	}
	return call("CL.THROTTLE", key, 1000, 1, funnelPeriod)
}

// overrides returns the overrides of the limit that is named so, in order.
func (s *server) overrides(t *testing.T) (all []string) {
	t.Helper()
	for cursor := "0"; ; {
		reply, isList := s.do(t, "CL.LIMIT", "OVERRIDES", "named", cursor).([]any)
		if !isList || len(reply) != 2 {
			t.Fatalf("got %v", reply)
		}
		for _, o := range reply[1].([]any) {
			all = append(all, fmt.Sprint(o))
		}
		if cursor = fmt.Sprint(reply[0]); cursor == "0" {
			return all
		}
	}
}

// TestFullSyncWhileClientsWrite: a replica that begins to follow under load has the leader's states in the
// end.
func TestFullSyncWhileClientsWrite(t *testing.T) {
	t.Parallel()
	leader := start(t)
	leader.do(t, "CL.LIMIT", "SET", "named", "FUNNEL", 9, 1, 60)
	w := startWriters(t, leader, 4, 5000)
	leader.Eventually(t, "have keys", func() bool { return w.calls.Load() > 20_000 })
	for range 3 { // the syncs overlap with different changes
		replica := startReplica(t, leader.Addr)
		before := w.calls.Load()
		replica.Eventually(t, "see more changes", func() bool { return w.calls.Load() > before+5000 })
		if replica.field(t, "master_link_status") != "up" || replica.field(t, "slave_priority") != "100" {
			t.Errorf("it follows as %v", replica.fields(t, "replication"))
		}
		replica.follow(t, "127.0.0.1:1")
	}
	replica := startReplica(t, leader.Addr)
	w.end()
	leader.inStep(t)
	sameStates(t, replica.dumps(t), leader.dumps(t))
	if got, want := fmt.Sprint(replica.overrides(t)), fmt.Sprint(leader.overrides(t)); got != want {
		t.Errorf("the overrides are %.300s, want %.300s", got, want)
	}
	if n := len(leader.dumps(t)); n < 4000 {
		t.Errorf("there are %d keys", n)
	}
}

// charge charges keys by a prefix.
func (s *server) charge(t *testing.T, prefix string, keys int) {
	t.Helper()
	pipe := s.rdb.Pipeline()
	for i := range keys {
		pipe.Do(t.Context(), "CL.THROTTLE", prefix+strconv.Itoa(i), 99, 1, funnelPeriod)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// expectSyncs expects that a leader has given all states so often, and a part at least so often: a link may
// break by itself where a process is not scheduled for seconds.
func (s *server) expectSyncs(t *testing.T, after string, full, partial int) {
	t.Helper()
	f := s.fields(t, "replication")
	if gave, _ := strconv.Atoi(f["cell_partial_syncs"]); f["cell_full_syncs"] != strconv.Itoa(full) || gave < partial {
		t.Errorf("after %s: %s full syncs and %d partial ones, want %d and %d", after, f["cell_full_syncs"], gave, full, partial)
	}
}

// TestBreaks: after a short break the stream goes on from the backlog, after a long one there are all states.
func TestBreaks(t *testing.T) {
	t.Parallel()
	leader, replica, between := pairOver(t, "--repl-backlog", "65536")
	leader.charge(t, "a", 10)
	leader.inStep(t)
	for _, tt := range []struct {
		name          string
		keys          int
		full, partial int
	}{
		{"nothing", 0, 1, 1},
		{"a short break", 100, 1, 2},
		{"a long break", 5000, 2, 2},
		{"a short break again", 100, 2, 3},
	} {
		between.cut()
		replica.awaitLink(t, "down")
		leader.charge(t, tt.name, tt.keys)
		leader.do(t, "DEL", "a0")
		leader.do(t, "WAIT", 1, 100) // has a round begin
		between.mend()
		replica.awaitLink(t, "up")
		leader.inStep(t)
		leader.expectSyncs(t, tt.name, tt.full, tt.partial)
		sameStates(t, replica.dumps(t), leader.dumps(t))
	}
}

// TestReplicaRestarts: a replica with a data directory of its own goes on where it ended, and after a crash
// takes all states.
func TestReplicaRestarts(t *testing.T) {
	t.Parallel()
	dir, leader := t.TempDir(), start(t)
	leader.charge(t, "a", 1000)
	leader.do(t, "CL.LIMIT", "SET", "named", "FUNNEL", 9, 1, 60)
	replica := startReplica(t, leader.Addr, "--data-dir", dir)
	leader.inStep(t)
	for _, tt := range []struct {
		end           syscall.Signal
		full, partial int
	}{
		{syscall.SIGTERM, 1, 1}, {syscall.SIGTERM, 1, 2}, {syscall.SIGKILL, 2, 2},
		{syscall.SIGTERM, 2, 3},
	} {
		replica.Stop(t, tt.end)
		leader.charge(t, "b", 500)
		leader.do(t, "DEL", "a1")
		leader.do(t, "CL.LIMIT", "OVERRIDE", "named", "x", "DENY")
		replica = start(t, "--data-dir", dir) // the directory has the role
		replica.awaitLink(t, "up")
		leader.inStep(t)
		leader.expectSyncs(t, tt.end.String(), tt.full, tt.partial)
		sameStates(t, replica.dumps(t), leader.dumps(t))
		replica.expect(t, "[named]", "CL.LIMIT", "LIST")
		if got, want := fmt.Sprint(replica.overrides(t)), fmt.Sprint(leader.overrides(t)); got != want {
			t.Errorf("the overrides are %s, want %s", got, want)
		}
	}
}

// TestLeaderReturns: a leader with a data directory that ends gracefully and returns lets its replica go on,
// without the loss of a change made at once. After a crash the replica takes all states.
func TestLeaderReturns(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), processtest.FreeAddr(t)
	args := []string{"--data-dir", dir, "--addr", addr}
	leader := start(t, args...)
	leader.charge(t, "a", 1000)
	replica := startReplica(t, addr)
	leader.inStep(t)
	for _, tt := range []struct {
		end           syscall.Signal
		full, partial int
	}{{syscall.SIGTERM, 0, 1}, {syscall.SIGKILL, 1, 0}, {syscall.SIGTERM, 0, 1}} {
		leader.charge(t, "c", 500)
		leader.Stop(t, tt.end)
		leader = start(t, args...)
		leader.charge(t, "d", 500)
		replica.awaitLink(t, "up")
		leader.inStep(t)
		leader.expectSyncs(t, tt.end.String(), tt.full, tt.partial)
		sameStates(t, replica.dumps(t), leader.dumps(t))
	}
}

// counter charges one unit after the other, and notes which of them the server has confirmed.
type counter struct {
	allowed, unknown int64
	refused          string // the last error
}

// count charges units until the server refuses, and with wait until a replica has each of them.
func count(t *testing.T, addr string, wait bool, began *atomic.Int64) (c counter) {
	t.Helper()
	nc := harness.DialTCP(t, addr)
	request, end := "CL.THROTTLE counted 99999 1 36000\r\n", "\r\n"
	if wait {
		request += "WAIT 1 60000\r\n"
	}
	buf := make([]byte, 4096)
	for {
		if _, err := nc.Write([]byte(request)); err != nil {
			return c
		}
		want, got := 6, ""
		if wait {
			want = 7
		}
		for strings.Count(got, end) < want {
			n, err := nc.Read(buf)
			got += string(buf[:n])
			if i := strings.Index(got, "-"); i >= 0 && strings.Contains(got[i:], " ") {
				c.refused = got
				return c
			}
			if err != nil {
				c.unknown++
				return c
			}
		}
		if wait && !strings.HasSuffix(got, ":1\r\n") {
			c.unknown++
			continue
		}
		c.allowed++
		began.Add(1)
	}
}

// counted returns the units that are charged.
func (s *server) counted(t *testing.T) int64 {
	t.Helper()
	reply, isList := s.do(t, "CL.THROTTLE", "counted", 99_999, 1, 36_000, 0).([]any)
	if !isList || len(reply) != 5 {
		t.Fatalf("got %v", reply)
	}
	return reply[1].(int64) - reply[2].(int64)
}

// countOver counts by some clients while something happens, and compares with what the next leader has, if
// there is one.
func countOver(t *testing.T, leader *server, wait bool, meanwhile func() (next *server)) {
	t.Helper()
	const clients = 4
	var began atomic.Int64
	before, all := leader.counted(t), make(chan counter, clients)
	for range clients {
		go func() { all <- count(t, leader.Addr, wait, &began) }()
	}
	leader.Eventually(t, "charge", func() bool { return began.Load() > 200 })
	next := meanwhile()
	allowed, unknown := int64(0), int64(0)
	for range clients {
		c := <-all
		allowed, unknown = allowed+c.allowed, unknown+c.unknown
		if c.refused != "" && !strings.Contains(c.refused, "-READONLY ") {
			t.Errorf("a call was refused with %q", c.refused)
		}
	}
	if next == nil {
		return
	}
	if got := next.counted(t) - before; got < allowed || got > allowed+unknown {
		t.Errorf("%d units are charged; %d were confirmed, and %d perhaps", got, allowed, unknown)
	}
}

// changeLeader tells the replica to lead while clients count, and checks that nothing is lost. It returns
// false, and ends the leader, where that has not handed over.
func changeLeader(t *testing.T, leader, replica *server) (handedOver bool) {
	t.Helper()
	countOver(t, leader, false, func() *server {
		if handedOver = replica.promote(t); handedOver {
			return replica
		}
		leader.crash(t)
		return nil
	})
	if !handedOver {
		return false
	}
	leader.await(t, "role", "slave")
	leader.awaitLink(t, "up")
	replica.inStep(t)
	sameStates(t, leader.dumps(t), replica.dumps(t))
	return true
}

// inTime repeats what a machine that lets a server stand still for a second may prevent, which it says.
func inTime(t *testing.T, do func() (prevented string)) {
	t.Helper()
	var prevented string
	for range 5 {
		if prevented = do(); prevented == "" {
			return
		}
	}
	t.Errorf("in each of five attempts %s", prevented)
}

const notHandedOver = "the leader has not handed over"

// TestPlannedChangesLoseNothing: a replica that is told to lead has every unit that the leader has confirmed,
// and the old leader follows it without taking all states.
func TestPlannedChangesLoseNothing(t *testing.T) {
	t.Parallel()
	inTime(t, func() string {
		leader := start(t)
		replica := startReplica(t, leader.Addr)
		for range 4 {
			if !changeLeader(t, leader, replica) {
				return notHandedOver
			}
			for _, s := range []*server{leader, replica} {
				if f := s.fields(t, "replication"); f["cell_full_syncs_taken"] > "1" {
					t.Errorf("it says %v", f)
				}
			}
			leader, replica = replica, leader
		}
		return ""
	})
}

// TestWaitIsKept: a unit that WAIT has found on the replica is never forgiven by a crash.
func TestWaitIsKept(t *testing.T) {
	t.Parallel()
	for range 3 {
		leader := start(t)
		replica := startReplica(t, leader.Addr)
		countOver(t, leader, true, func() *server {
			leader.crash(t)
			replica.awaitLink(t, "down")
			replica.promote(t)
			return replica
		})
	}
}
