package deploytest

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/deploy/sharding/ring"
	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
	"cellserver/lab/internal/built"
)

// shards are independent cellservers. Each keeps its address over restarts.
type shards struct {
	binary  string
	servers [3]*server
	addrs   [3]string
	metrics [3]string
	clients [3]*redis.Client // directly
}

func startShards(t *testing.T) *shards {
	t.Helper()
	s := &shards{binary: built.Server(t)}
	for i := range s.servers {
		s.addrs[i], s.metrics[i] = processtest.FreeAddr(t), processtest.FreeAddr(t)
		s.clients[i] = redistest.NewClient(t, redis.Options{Addr: s.addrs[i]})
		s.start(t, i)
	}
	return s
}

func (s *shards) start(t *testing.T, i int) {
	t.Helper()
	s.servers[i] = startServer(t, s.binary, s.addrs[i], s.metrics[i])
}

func (s *shards) kill(t *testing.T, i int) {
	t.Helper()
	s.servers[i].Stop(t, syscall.SIGKILL)
}

// home returns the server that has a key, or -1.
func (s *shards) home(t *testing.T, key string) int {
	t.Helper()
	for i, c := range s.clients {
		if s.servers[i].HasExited() {
			continue
		}
		if n, err := c.Exists(t.Context(), key).Result(); err != nil {
			t.Fatal(err)
		} else if n > 0 {
			return i
		}
	}
	return -1
}

const shardKeys = 60

// spend makes one call for each key, which allows one an hour, and returns whether each was allowed, and the
// errors.
func spend(t *testing.T, client func(key string) redis.UniversalClient) (allowed map[string]bool, failed map[string]error) {
	t.Helper()
	allowed, failed = map[string]bool{}, map[string]error{}
	for i := range shardKeys {
		key := fmt.Sprintf("user:%d", i)
		reply, err := client(key).Do(t.Context(), "CL.THROTTLE", key, 0, 1, 3600).Int64Slice()
		if err != nil {
			failed[key] = err
			continue
		}
		allowed[key] = reply[0] == 0
	}
	return allowed, failed
}

// spendAll spends each key's only unit, and returns the servers that have the keys.
func (s *shards) spendAll(t *testing.T, client func(key string) redis.UniversalClient) (homes map[string]int) {
	t.Helper()
	allowed, failed := spend(t, client)
	homes = map[string]int{}
	for key, ok := range allowed {
		if homes[key] = s.home(t, key); !ok || homes[key] < 0 {
			t.Fatalf("%s: allowed %v by %d", key, ok, homes[key])
		}
	}
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	return homes
}

// TestRing checks that only the keys of a lost server move, that a move forgives one burst, and that they
// return with the server.
func TestRing(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for heartbeats")
	}
	t.Parallel()
	s := startShards(t)
	names := map[string]string{"a": s.addrs[0], "b": s.addrs[1], "c": s.addrs[2]}
	const timeout = time.Minute
	moving, staying := ring.Open(names, "", timeout, false), ring.Open(names, "", timeout, true)
	defer func() { _, _ = moving.Close(), staying.Close() }()
	through := func(r *redis.Ring) func(string) redis.UniversalClient {
		return func(string) redis.UniversalClient { return r }
	}

	homes := s.spendAll(t, through(moving))
	each := [3]int{}
	for _, home := range homes {
		each[home]++
	}
	if min(each[0], each[1], each[2]) == 0 {
		t.Fatalf("the servers have %v keys", each)
	}
	const lost = 1
	s.kill(t, lost)
	s.servers[0].Eventually(t, "be one of two in the ring", func() bool { return moving.Len() == 2 })
	allowed, failed := spend(t, through(moving))
	for key, home := range homes {
		if allowed[key] != (home == lost) || s.home(t, key) < 0 || home != lost && s.home(t, key) != home {
			t.Errorf("%s of server %d: allowed %v, now by %d", key, home, allowed[key], s.home(t, key))
		}
	}
	if len(failed) > 0 {
		t.Errorf("after a lost server was noticed: %v", failed)
	}
	_, failed = spend(t, through(staying))
	for key, home := range homes {
		if (failed[key] != nil) != (home == lost) {
			t.Errorf("keys stay, and %s of server %d fails with %v", key, home, failed[key])
		}
	}

	s.start(t, lost)
	s.servers[0].Eventually(t, "be one of three in the ring", func() bool { return moving.Len() == 3 })
	allowed, failed = spend(t, through(moving))
	for key, home := range homes {
		if n := s.clients[lost].Exists(t.Context(), key).Val(); allowed[key] != (home == lost) || n != 0 != (home == lost) {
			t.Errorf("%s of server %d, which is back: allowed %v, there %v", key, home, allowed[key], n != 0)
		}
	}
	if len(failed) > 0 {
		t.Errorf("after a server came back: %v", failed)
	}
}
