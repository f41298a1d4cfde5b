package replication

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// lossOf says what a crash forgets of a kind: what is done in the lag, and nothing else.
type lossOf struct {
	kind   string
	key    string // whose state is compared
	before [][]any
	inLag  [][]any
	looks  []any // compared instead of the state
	after  []replyTo
}

type replyTo struct {
	want string
	call []any
}

func call(args ...any) []any { return args }

// losses are what may be lost, by kind.
var losses = []lossOf{
	{kind: "a funnel", key: "funnel", before: [][]any{call("CL.THROTTLE", "funnel", 99, 1, 3600, 7)}, inLag: [][]any{call("CL.THROTTLE", "funnel", 99, 1, 3600, 5)},
		after: []replyTo{{"[0 100 93 ", call("CL.THROTTLE", "funnel", 99, 1, 3600, 0)}}},
	{kind: "a new key", key: "new", inLag: [][]any{call("CL.THROTTLE", "new", 99, 1, 3600, 5)}, looks: call("EXISTS", "new")},
	{kind: "a fixed window", key: "fixed", before: [][]any{call("CL.FIXEDWINDOW", "fixed", 100, 86_400, 7)}, inLag: [][]any{call("CL.FIXEDWINDOW", "fixed", 100, 86_400, 5)},
		after: []replyTo{{"[0 100 93 ", call("CL.FIXEDWINDOW", "fixed", 100, 86_400, 0)}}},
	{kind: "an exact window", key: "exact", before: [][]any{call("CL.SLIDINGWINDOW", "exact", 100, 86_400, 7)}, inLag: [][]any{call("CL.SLIDINGWINDOW", "exact", 100, 86_400, 5)},
		after: []replyTo{{"[0 100 93 ", call("CL.SLIDINGWINDOW", "exact", 100, 86_400, 0)}}},
	{kind: "an approximate window", key: "approx", before: [][]any{call("CL.SLIDINGWINDOW", "approx", 100, 86_400, 7, "APPROX")}, inLag: [][]any{call("CL.SLIDINGWINDOW", "approx", 100, 86_400, 5, "APPROX")}},
	{kind: "a bucket", key: "bucket", before: [][]any{call("CL.BUCKET", "ADD", "bucket", 100, 50), call("CL.BUCKET", "TAKE", "bucket", 100, 7)}, inLag: [][]any{call("CL.BUCKET", "TAKE", "bucket", 100, 5)},
		after: []replyTo{{"43", call("CL.BUCKET", "LEN", "bucket")}}},
	{kind: "what a bucket is given", key: "filled", before: [][]any{call("CL.BUCKET", "ADD", "filled", 100, 5)}, inLag: [][]any{call("CL.BUCKET", "ADD", "filled", 100, 50)},
		after: []replyTo{{"5", call("CL.BUCKET", "LEN", "filled")}}},
	{kind: "a quota", key: "quota", before: [][]any{call("CL.QUOTA", "quota", 100, "YEAR", 7)}, inLag: [][]any{call("CL.QUOTA", "quota", 100, "YEAR", 5)},
		after: []replyTo{{"[0 100 93 ", call("CL.QUOTA", "quota", 100, "YEAR", 0)}}},
	{kind: "a named limit", key: "named:acme", before: [][]any{call("CL.LIMIT", "SET", "named", "FUNNEL", 99, 1, 3600), call("CL.CHECK", "named", "acme", 7)}, inLag: [][]any{call("CL.CHECK", "named", "acme", 5)},
		after: []replyTo{{"[0 100 93 ", call("CL.CHECK", "named", "acme", 0)}}},
	{kind: "a lease", key: "leases", before: [][]any{call("CL.CONCURRENCY", "ACQUIRE", "leases", 3, 3_600_000, "a")}, inLag: [][]any{call("CL.CONCURRENCY", "ACQUIRE", "leases", 3, 3_600_000, "b")},
		after: []replyTo{{"0", call("CL.CONCURRENCY", "RELEASE", "leases", "b")}, {"1", call("CL.CONCURRENCY", "RELEASE", "leases", "a")}}},
	{kind: "a released lease", key: "released", before: [][]any{call("CL.CONCURRENCY", "ACQUIRE", "released", 3, 3_600_000, "a")}, inLag: [][]any{call("CL.CONCURRENCY", "RELEASE", "released", "a")},
		after: []replyTo{{"1", call("CL.CONCURRENCY", "RELEASE", "released", "a")}}},
	{kind: "a reservation", key: "reserved", before: [][]any{call("CL.RESERVE", "reserved", 99, 1, 3600, 7, 3_600_000)}, inLag: [][]any{call("CL.RESERVE", "reserved", 99, 1, 3600, 5, 3_600_000)}},
	{kind: "an override", before: [][]any{call("CL.LIMIT", "SET", "plans", "FUNNEL", 99, 1, 3600), call("CL.LIMIT", "OVERRIDE", "plans", "a", "DENY")},
		inLag: [][]any{call("CL.LIMIT", "OVERRIDE", "plans", "b", "DENY"), call("CL.LIMIT", "OVERRIDE", "plans", "a", "DEL")}, looks: call("CL.LIMIT", "OVERRIDES", "plans")},
	{kind: "a definition", inLag: [][]any{call("CL.LIMIT", "SET", "later", "FUNNEL", 9, 1, 60), call("CL.LIMIT", "DEL", "plans")}, looks: call("CL.LIMIT", "LIST")},
	{kind: "a refund", key: "refunded", before: [][]any{call("CL.THROTTLE", "refunded", 99, 1, 3600, 50)}, inLag: [][]any{call("CL.REFUND", "refunded", 99, 1, 3600, 20)},
		after: []replyTo{{"[0 100 50 ", call("CL.THROTTLE", "refunded", 99, 1, 3600, 0)}}},
	{kind: "a DEL", key: "deleted", before: [][]any{call("CL.THROTTLE", "deleted", 99, 1, 3600, 50)}, inLag: [][]any{call("DEL", "deleted")},
		after: []replyTo{{"[0 100 50 ", call("CL.THROTTLE", "deleted", 99, 1, 3600, 0)}}},
	{kind: "an EXPIRE", key: "expiring", before: [][]any{call("CL.BUCKET", "ADD", "expiring", 100, 50)}, inLag: [][]any{call("PEXPIRE", "expiring", 3_600_000)},
		after: []replyTo{{"-1", call("TTL", "expiring")}}},
	{kind: "a counter", key: "counter", before: [][]any{call("INCRBY", "counter", 7)}, inLag: [][]any{call("INCRBY", "counter", 5)},
		after: []replyTo{{"7", call("GET", "counter")}}},
	{kind: "an INCREX", key: "bounded", before: [][]any{call("INCREX", "bounded", "BYINT", 7, "EX", 3600)}, inLag: [][]any{call("INCREX", "bounded", "BYINT", 5, "PERSIST")},
		after: []replyTo{{"7", call("GET", "bounded")}}},
	{kind: "a time that INCREX sets", before: [][]any{call("INCREX", "ends", "BYFLOAT", 7, "EX", 3600)}, inLag: [][]any{call("INCREX", "ends", "EX", 7200)}, looks: call("PEXPIRETIME", "ends")},
	{kind: "an INCREX that deletes", key: "past", before: [][]any{call("SET", "past", 5)}, inLag: [][]any{call("INCREX", "past", "EXAT", 1)}},
	{kind: "a value's time", before: [][]any{call("SET", "timed", "x", "EX", 3600)}, inLag: [][]any{call("PERSIST", "timed")}, looks: call("PEXPIRETIME", "timed")},
	{kind: "a GETDEL", key: "taken", before: [][]any{call("SET", "taken", strings.Repeat("x", 64<<10))}, inLag: [][]any{call("GETDEL", "taken")}},
	{kind: "a RESTORE", inLag: [][]any{call("CL.RESET", "funnel2")}, key: "funnel2", before: [][]any{call("CL.THROTTLE", "funnel2", 99, 1, 3600, 7)}},
}

// TestCrashForgivesTheLag: a replica that is promoted after a crash has every kind of state as it was when
// the link broke: what was charged since is forgiven, what was deleted or given back since is not.
func TestCrashForgivesTheLag(t *testing.T) {
	t.Parallel()
	leader, replica, between := pairOver(t)
	type seen struct{ state, look string }
	look := func(s *server, l *lossOf) seen {
		if l.looks != nil {
			return seen{look: s.say(t, l.looks...)}
		}
		return seen{state: s.say(t, "DUMP", l.key)}
	}
	for i := range losses {
		for _, c := range losses[i].before {
			leader.do(t, c...)
		}
	}
	leader.inStep(t)
	want := make([]seen, len(losses))
	for i := range losses {
		want[i] = look(leader, &losses[i])
	}
	between.cut()
	for i := range losses {
		for _, c := range losses[i].inLag {
			leader.do(t, c...)
		}
	}
	for i := range losses {
		if look(leader, &losses[i]) == want[i] {
			t.Errorf("%s: nothing has changed in the lag", losses[i].kind)
		}
	}
	replica.awaitLink(t, "down")
	leader.crash(t)
	replica.promote(t)
	for i := range losses {
		t.Run(losses[i].kind, func(t *testing.T) {
			if got := look(replica, &losses[i]); got != want[i] {
				t.Errorf("got %q, want %q", got, want[i])
			}
			for _, a := range losses[i].after {
				replica.expect(t, a.want, a.call...)
			}
		})
	}
}

// TestFlushInTheLagComesBack: a FLUSHALL that no replica has seen is forgotten.
func TestFlushInTheLagComesBack(t *testing.T) {
	t.Parallel()
	leader, replica, between := pairOver(t)
	for i := range 500 {
		leader.do(t, "CL.THROTTLE", fmt.Sprint("key", i), 99, 1, 3600, 1+i%50)
	}
	leader.do(t, "FLUSHALL")
	for i := range 100 {
		leader.do(t, "CL.THROTTLE", fmt.Sprint("key", i), 99, 1, 3600, 1+i%50)
	}
	leader.inStep(t)
	want := leader.dumps(t)
	sameStates(t, replica.dumps(t), want)
	between.cut()
	leader.do(t, "FLUSHALL")
	replica.awaitLink(t, "down")
	leader.crash(t)
	replica.promote(t)
	sameStates(t, replica.dumps(t), want)
	if len(want) != 100 {
		t.Errorf("%d keys were there", len(want))
	}
}

// TestMovedKeysNeverVanish: a key that transactions move between two names is in at least one of them on a
// replica promoted at any time.
func TestMovedKeysNeverVanish(t *testing.T) {
	t.Parallel()
	const keys = 50
	for range 3 {
		leader, replica, between := pairOver(t)
		for i := range keys {
			leader.do(t, "CL.THROTTLE", fmt.Sprint("a", i), 99, 1, 3_600_000, 50)
		}
		state := leader.do(t, "DUMP", "a0").(string)
		leader.inStep(t)
		var moves atomic.Int64
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			from, to := "a", "b"
			for {
				for i := range keys {
					pipe := leader.rdb.TxPipeline()
					pipe.Do(t.Context(), "DEL", from+strconv.Itoa(i))
					pipe.Do(t.Context(), "RESTORE", to+strconv.Itoa(i), 0, state)
					if _, err := pipe.Exec(t.Context()); err != nil {
						return // the leader is killed
					}
					moves.Add(1)
				}
				select {
				case <-stop:
					return
				default:
					from, to = to, from
				}
			}
		})
		replica.Eventually(t, "see moves", func() bool { return moves.Load() > 20*keys })
		between.cut()
		replica.awaitLink(t, "down")
		close(stop)
		leader.crash(t)
		wg.Wait()
		replica.promote(t)
		for i := range keys {
			if replica.say(t, "EXISTS", fmt.Sprint("a", i), fmt.Sprint("b", i)) == "0" {
				t.Errorf("key %d is in neither of its names", i)
			}
		}
	}
}

// TestEvictedKeys: what a leader evicts stays with its replica, and what the replica evicts itself is
// forgiven when it leads, and nothing else.
func TestEvictedKeys(t *testing.T) {
	t.Parallel()
	const keys, small = 8_000, "48mb" // half of them values
	charge := func(t *testing.T, s *server) {
		for from := 0; from < keys; from += 1000 {
			pipe := s.rdb.Pipeline()
			for i := from; i < from+1000; i++ {
				large := fmt.Sprintf("%02000d", i)
				if i%2 == 0 {
					pipe.Do(t.Context(), "CL.THROTTLE", large, 99, 1, 3600)
				} else {
					pipe.Do(t.Context(), "SET", i, large, "EX", 3600)
				}
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := func(s *server) (n int) {
		n, _ = strconv.Atoi(s.say(t, "DBSIZE"))
		return n
	}
	t.Run("by the replica", func(t *testing.T) {
		leader := start(t)
		replica := startReplica(t, leader.Addr, "--maxmemory", small, "--maxmemory-policy", "volatile-ttl")
		charge(t, leader)
		leader.inStep(t)
		all := leader.dumps(t)
		leader.crash(t)
		replica.awaitLink(t, "down")
		replica.promote(t)
		if len(all) != keys {
			t.Fatalf("the leader has %d keys", len(all))
		}
		left := replica.dumps(t)
		if evicted, _ := strconv.Atoi(replica.fields(t, "stats")["evicted_keys"]); len(left) == keys || len(left)+evicted < keys {
			t.Errorf("%d keys, %d evicted, of %d", len(left), evicted, keys)
		}
		maps.DeleteFunc(all, func(key, _ string) bool { return left[key] == "" })
		sameStates(t, left, all)
	})
	t.Run("by the leader", func(t *testing.T) {
		leader := start(t, "--maxmemory", small, "--maxmemory-policy", "volatile-ttl")
		replica := startReplica(t, leader.Addr)
		charge(t, leader)
		leader.inStep(t)
		if on, there := size(leader), size(replica); on >= keys || there < on {
			t.Errorf("the leader has %d keys, and its replica %d", on, there)
		}
		want, got := leader.dumps(t), replica.dumps(t)
		for key, state := range want {
			if got[key] != state {
				t.Errorf("%s is %q, want %q", key, got[key], state)
			}
		}
	})
}
