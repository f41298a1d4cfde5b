package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
)

const (
	masters = 3
	slots   = 16384
)

// ClusterNodes holds a cluster's servers in their initial roles: a failover swaps some.
type ClusterNodes struct {
	Masters  []*Process
	Replicas []*Process // Replicas[i] follows Masters[i]
}

// Cluster runs three masters and three replicas until the test ends. They wait for a silent node for an hour;
// args with a shorter --cluster-node-timeout have it replaced.
func Cluster(t *testing.T, args ...string) *ClusterNodes {
	t.Helper()
	return cluster(t, false, args)
}

// ProxiedCluster is a Cluster whose nodes announce proxies to clients and one another; the cluster bus has
// none.
func ProxiedCluster(t *testing.T, args ...string) *ClusterNodes {
	t.Helper()
	return cluster(t, true, args)
}

func cluster(t *testing.T, proxied bool, args []string) *ClusterNodes {
	t.Helper()
	processtest.Need(t, "redis-server")
	c, err := launchCluster(t.Context(), t.TempDir(), proxied, args)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, c.All()...)
	return c
}

// LaunchCluster is Cluster for programs. It ends with Close or with this process.
func LaunchCluster(ctx context.Context, dir string, args ...string) (*ClusterNodes, error) {
	return launchCluster(ctx, dir, false, args)
}

func launchCluster(ctx context.Context, dir string, proxied bool, args []string) (*ClusterNodes, error) {
	c := &ClusterNodes{}
	for i := range 2 * masters {
		p, err := launchNode(ctx, dir, i, proxied, args)
		if err != nil {
			c.Close()
			return nil, err
		}
		if i < masters {
			c.Masters = append(c.Masters, p)
		} else {
			c.Replicas = append(c.Replicas, p)
		}
	}
	if err := c.form(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func launchNode(ctx context.Context, dir string, i int, proxied bool, args []string) (*Process, error) {
	own, err := subdirectory(dir, strconv.Itoa(i))
	if err != nil {
		return nil, err
	}
	return launch(ctx, own, nil, func(p *Process) error {
		// A replica takes over whatever the age of its data, and gets its first copy at once.
		p.args = append(p.args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(p.busPort), "--cluster-node-timeout", "3600000",
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0")
		if proxied {
			if p.Proxy, err = openProxy(p.ownAddr()); err != nil {
				return err
			}
			p.Addr = p.Proxy.Addr
			_, port, _ := net.SplitHostPort(p.Addr)
			p.args = append(p.args, "--cluster-announce-port", port)
		}
		p.args = append(p.args, args...)
		return nil
	})
}

// All returns the masters, then the replicas.
func (c *ClusterNodes) All() []*Process {
	return append(c.Masters[:len(c.Masters):len(c.Masters)], c.Replicas...)
}

func (c *ClusterNodes) Close() {
	for _, p := range c.All() {
		p.Close()
	}
}

// URL returns the value for --store.
func (c *ClusterNodes) URL() string { return url("redis-cluster", c.All()) }

func (c *ClusterNodes) form(ctx context.Context) error {
	for i, p := range c.All() {
		// Nodes with equal epochs need seconds to settle, which delays a failover.
		if err := p.client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("redistest: configuration epoch: %w", err)
		}
	}
	for i, p := range c.All() {
		for _, other := range c.All()[i+1:] {
			if err := p.client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", other.port, other.busPort).Err(); err != nil {
				return fmt.Errorf("redistest: cluster meet: %w", err)
			}
		}
	}
	for i, p := range c.Masters {
		if err := p.client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			return fmt.Errorf("redistest: slots: %w", err)
		}
	}
	if err := awaitAll(ctx, c.All(), "know all nodes", knowsAll); err != nil {
		return err
	}
	for i, p := range c.Replicas {
		id, err := c.Masters[i].nodeID(ctx)
		if err != nil {
			return err
		}
		if err := p.client.ClusterReplicate(ctx, id).Err(); err != nil {
			return fmt.Errorf("redistest: replica: %w", err)
		}
	}
	return c.Await(ctx)
}

// knowsAll reports whether all handshakes are complete.
func knowsAll(ctx context.Context, client *redis.Client) bool {
	nodes, err := client.ClusterNodes(ctx).Result()
	return err == nil && strings.Count(nodes, "\n") == 2*masters && !strings.Contains(nodes, "handshake")
}

func (p *Process) nodeID(ctx context.Context) (string, error) {
	id, err := p.client.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return "", fmt.Errorf("redistest: node's id: %w", err)
	}
	return id, nil
}

// Await waits until every node reports a healthy cluster and has its peer.
func (c *ClusterNodes) Await(ctx context.Context) error {
	return awaitAll(ctx, c.All(), "find the cluster in order", func(ctx context.Context, node *redis.Client) bool {
		info, err := node.ClusterInfo(ctx).Result()
		if err != nil || !strings.Contains(info, "cluster_state:ok") {
			return false
		}
		nodes, err := node.ClusterNodes(ctx).Result()
		if err != nil || strings.Count(nodes, " master ")+strings.Count(nodes, "myself,master ") != masters || strings.Contains(nodes, "fail") {
			return false
		}
		replication, err := node.Info(ctx, "replication").Result()
		return err == nil && (strings.Contains(replication, "master_link_status:up") || strings.Contains(replication, "state=online"))
	})
}

// Master returns the current master of a key's slot, according to the first node that answers.
func (c *ClusterNodes) Master(ctx context.Context, key string) (*Process, error) {
	for _, p := range c.All() {
		slot, err := p.client.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			continue
		}
		shards, err := p.client.ClusterShards(ctx).Result()
		if err != nil {
			continue
		}
		if master := c.masterIn(shards, slot); master != nil {
			return master, nil
		}
	}
	return nil, fmt.Errorf("redistest: no node knows the master of %q", key)
}

func (c *ClusterNodes) masterIn(shards []redis.ClusterShard, slot int64) *Process {
	for _, shard := range shards {
		if !slices.ContainsFunc(shard.Slots, func(r redis.SlotRange) bool { return r.Start <= slot && slot <= r.End }) {
			continue
		}
		for _, node := range shard.Nodes {
			for _, p := range c.All() {
				if node.Role == "master" && node.Health == "online" && p.Addr == net.JoinHostPort(node.IP, strconv.FormatInt(node.Port, 10)) {
					return p
				}
			}
		}
	}
	return nil
}
