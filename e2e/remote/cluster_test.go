package remote

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/remotetest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/redistest"
)

// TestRemoteCluster shares one cluster among what can be wrong with a part of it. Its nodes are so patient
// with one another that none is replaced meanwhile; replacements are soak's.
func TestRemoteCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	racetest.OneAtATime(t)
	cluster := redistest.ProxiedCluster(t)
	t.Run("a slot moves", func(t *testing.T) { testSlotMoves(t, cluster) })
	t.Run("a slow node", func(t *testing.T) { testSlowNode(t, cluster) })
	for name, fault := range map[string]func(*redistest.Process){
		"a node stands still":     (*redistest.Process).Stop,
		"a node is in the dark":   func(p *redistest.Process) { p.Proxy.BlackHole() },
		"a node hangs up":         func(p *redistest.Process) { p.Proxy.Cut() },
		"a node answers too late": func(p *redistest.Process) { p.Proxy.Delay(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) { testNodeAway(t, cluster, fault) })
	}
}

// testSlotMoves moves a slot there and back again under load, with a rest half way: every allowed call was
// debited once.
func testSlotMoves(t *testing.T, cluster *redistest.ClusterNodes) {
	ctx := t.Context()
	load := &remotetest.Load{Clients: 20, Limits: []remotetest.Limit{remotetest.ExactLimit()}, Pause: time.Millisecond}
	for range 2 {
		p, _ := startRemote(t, cluster.URL(), "--store-timeout", never)
		load.Servers = append(load.Servers, p.Addr)
	}
	const keys = 20
	for i := range keys {
		load.Keys = append(load.Keys, fmt.Sprintf("{moves}%d", i))
	}
	calling, end := context.WithCancel(ctx)
	moved := make(chan error, 1)
	go func() {
		defer end()
		moved <- moveThereAndBack(ctx, cluster)
	}()
	record, err := load.Run(calling)
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(record.Errors) > 0 {
		t.Errorf("errors: %s", record.ErrorsText())
	}
	master, err := cluster.Master(ctx, load.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range load.Keys {
		debits, err := remotetest.Debits(ctx, master.Client(), key, record.Began)
		if allowed := remotetest.Count(record.Calls[i], remotetest.Allowed); debits != allowed || allowed == 0 || err != nil {
			t.Errorf("%s: %d calls were allowed, %d debited, %v", key, allowed, debits, err)
		}
	}
}

// moveThereAndBack moves the slot of {moves} to each other master in turn, and home.
func moveThereAndBack(ctx context.Context, cluster *redistest.ClusterNodes) error {
	const rest = 200 * time.Millisecond // in which clients meet each stage
	home, err := cluster.Master(ctx, "{moves}")
	if err != nil {
		return err
	}
	slot, err := home.Client().ClusterKeySlot(ctx, "{moves}").Result()
	if err != nil {
		return err
	}
	from := home
	for _, to := range append(cluster.Masters[:len(cluster.Masters):len(cluster.Masters)], home) {
		if to == from {
			continue
		}
		m := cluster.MigrateSlot(int(slot), from, to)
		time.Sleep(rest)
		if err := m.Begin(ctx); err != nil {
			return err
		}
		time.Sleep(rest)
		if _, err := m.Move(ctx, 10); err != nil {
			return err
		}
		time.Sleep(rest)
		if err := m.Run(ctx); err != nil {
			return err
		}
		from = to
	}
	time.Sleep(rest)
	return nil
}

// keyOf returns a key whose slot a master has.
func keyOf(t *testing.T, cluster *redistest.ClusterNodes, master *redistest.Process, prefix string) string {
	t.Helper()
	for i := range 1000 {
		key := fmt.Sprint(prefix, i)
		if m, err := cluster.Master(t.Context(), key); err == nil && m == master {
			return key
		}
	}
	t.Fatalf("%s has no slots", master.Addr)
	return ""
}

// testSlowNode: what is slow and yet in time is no failure.
func testSlowNode(t *testing.T, cluster *redistest.ClusterNodes) {
	_, client := startRemote(t, cluster.URL(), "--store-timeout", never)
	slow := cluster.Masters[1]
	key := keyOf(t, cluster, slow, "slow")
	slow.Proxy.Delay(100 * time.Millisecond)
	defer slow.Proxy.Heal()
	for i := range int64(3) {
		numbers, err := client.Do(t.Context(), "CL.THROTTLE", key, 15, 1, 3600).Int64Slice()
		if want := []int64{0, 16, 15 - i, -1}; err != nil || !slices.Equal(numbers[:4], want) {
			t.Errorf("call %d: %v, %v, want %v", i, numbers, err, want)
		}
	}
}

// testNodeAway: a node that is away is not waited for by calls for keys of others, and is called again when
// it is back.
func testNodeAway(t *testing.T, cluster *redistest.ClusterNodes, fault func(*redistest.Process)) {
	p, client := startRemote(t, cluster.URL(), "--store-timeout", "10s")
	away := cluster.Masters[2]
	lost, there := keyOf(t, cluster, away, t.Name()), keyOf(t, cluster, cluster.Masters[0], t.Name())
	for _, key := range []string{lost, there} {
		p.Eventually(t, "decide", func() bool {
			return throttle(t, client, key) == firstOfSixteen || throttle(t, client, key)[:2] == "0 "
		})
	}
	fault(away)
	defer away.Continue()
	defer away.Proxy.Heal()
	if got := throttle(t, client, lost); !isDown(got) {
		t.Errorf("a key of the node: %q", got)
	}
	if failures := p.Metric(t, "cellserver_store_failures_total"); failures < 1 {
		t.Errorf("%v failures", failures)
	}
	// All at once, so that one that waits for the node would be seen.
	var replies []*redis.Cmd
	pipeline := client.Pipeline()
	for range 5 {
		replies = append(replies, pipeline.Do(t.Context(), "CL.THROTTLE", there, 15, 30, 60))
		pipeline.Do(t.Context(), "CL.THROTTLE", lost, 15, 30, 60)
	}
	_, _ = pipeline.Exec(t.Context())
	for _, reply := range replies {
		if _, err := reply.Slice(); err != nil {
			t.Errorf("a key of another node: %v", err)
		}
	}
	away.Continue()
	away.Proxy.Heal()
	p.Eventually(t, "call the node again", func() bool { return throttle(t, client, lost)[:2] == "0 " })
}
