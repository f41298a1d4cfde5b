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
)

// Of a cluster: its masters, each with one replica.
const (
	masters = 3
	slots   = 16384
)

// ClusterNodes are the servers of a cluster as it was formed: after a failover a replica may be the master.
type ClusterNodes struct {
	Masters  []*Process
	Replicas []*Process // Replicas[i] is that of Masters[i]
}

// Cluster runs three masters and three replicas until the test ends. A node that is away for a second is replaced; the
// arguments may say otherwise (--cluster-node-timeout).
func Cluster(t *testing.T, args ...string) *ClusterNodes {
	t.Helper()
	return cluster(t, false, args)
}

// ProxiedCluster is a Cluster whose nodes announce proxies to clients and to one another; the bus between nodes has none.
func ProxiedCluster(t *testing.T, args ...string) *ClusterNodes {
	t.Helper()
	return cluster(t, true, args)
}

func cluster(t *testing.T, proxied bool, args []string) *ClusterNodes {
	t.Helper()
	need(t)
	c, err := launchCluster(t.Context(), t.TempDir(), proxied, args)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, c.All()...)
	return c
}

// LaunchCluster is Cluster for programs that are no tests. It ends with Close, and when this process ends.
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
		// A replica takes over however long it has not heard of its master, and is not kept waiting for its first copy.
		p.args = append(p.args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(p.busPort), "--cluster-node-timeout", "1000",
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

// All returns the masters and then the replicas.
func (c *ClusterNodes) All() []*Process {
	return append(c.Masters[:len(c.Masters):len(c.Masters)], c.Replicas...)
}

// Close ends all servers.
func (c *ClusterNodes) Close() {
	for _, p := range c.All() {
		p.Close()
	}
}

// URL returns what --store takes.
func (c *ClusterNodes) URL() string {
	var addrs []string
	for _, p := range c.All() {
		addrs = append(addrs, p.Addr)
	}
	return "redis-cluster://" + strings.Join(addrs, ",")
}

// CPUSeconds returns the CPU time of all servers.
func (c *ClusterNodes) CPUSeconds() (float64, error) {
	var sum float64
	for _, p := range c.All() {
		s, err := p.CPUSeconds()
		if err != nil {
			return 0, err
		}
		sum += s
	}
	return sum, nil
}

// form makes the servers one cluster.
func (c *ClusterNodes) form(ctx context.Context) error {
	for i, p := range c.All() {
		// Equal epochs are told apart one a second, and a failover must wait for that.
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
	for _, p := range c.All() {
		if err := p.await(ctx, "know all nodes", func(ctx context.Context) bool { return knowsAll(ctx, p.client) }); err != nil {
			return err
		}
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

// knowsAll looks whether no handshake is under way any more.
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

// Await waits until every node says that the cluster is in order, and has its replica or its master.
func (c *ClusterNodes) Await(ctx context.Context) error {
	for _, p := range c.All() {
		err := p.await(ctx, "find the cluster in order", func(ctx context.Context) bool {
			info, err := p.client.ClusterInfo(ctx).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") {
				return false
			}
			nodes, err := p.client.ClusterNodes(ctx).Result()
			if err != nil || strings.Count(nodes, " master ")+strings.Count(nodes, "myself,master ") != masters || strings.Contains(nodes, "fail") {
				return false
			}
			replication, err := p.client.Info(ctx, "replication").Result()
			return err == nil && (strings.Contains(replication, "master_link_status:up") || strings.Contains(replication, "state=online"))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Master returns the server that is the master of a key's slot now, as the first node that answers says.
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
