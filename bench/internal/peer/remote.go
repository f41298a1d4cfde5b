package peer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"cellserver/bench/internal/load"
	"cellserver/internal/test/redistest"
)

// RedisRateLibrary is redis_rate used as a library.
const RedisRateLibrary = "redis_rate"

// Cluster is a Redis cluster of three masters and three replicas.
type Cluster struct{ nodes *redistest.ClusterNodes }

// StartCluster starts a cluster that writes nothing to disk.
func (k *Kit) StartCluster(ctx context.Context) (*Cluster, error) {
	dir, err := k.DataDir()
	if err != nil {
		return nil, err
	}
	// A node that waits for the processor must not count as failed.
	nodes, err := redistest.LaunchCluster(ctx, dir, "--cluster-node-timeout", "30000", "--maxclients", maxClients)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	return &Cluster{nodes}, nil
}

// Stop ends all servers.
func (c *Cluster) Stop() { c.nodes.Close() }

// URL returns the value for --store.
func (c *Cluster) URL() string { return c.nodes.URL() }

// CPU returns the CPU time of all servers so far.
func (c *Cluster) CPU() (sum time.Duration, err error) {
	for _, p := range c.nodes.All() {
		one, err := cpuTime(p.PID())
		if err != nil {
			return 0, fmt.Errorf("peer: CPU time of the cluster: %w", err)
		}
		sum += one
	}
	return sum, nil
}

// ScriptCalls returns the number of scripts and functions called by clients.
func (c *Cluster) ScriptCalls(ctx context.Context) (calls int, err error) {
	for _, p := range c.nodes.Masters {
		stats, err := p.Client().Info(ctx, "commandstats").Result()
		if err != nil {
			return 0, fmt.Errorf("peer: commandstats: %w", err)
		}
		for line := range strings.Lines(stats) {
			name, values, _ := strings.Cut(strings.TrimSpace(line), ":calls=")
			if !strings.HasPrefix(name, "cmdstat_eval") && !strings.HasPrefix(name, "cmdstat_fcall") {
				continue
			}
			count, _, _ := strings.Cut(values, ",")
			n, err := strconv.Atoi(count)
			if err != nil {
				return 0, fmt.Errorf("peer: commandstats: %q: %w", line, err)
			}
			calls += n
		}
	}
	return calls, nil
}

// RedisRate returns a call of the library on the cluster for a number of callers, and a function that closes
// its connections.
func (c *Cluster) RedisRate(limit redis_rate.Limit, prefix string, callers int) (call load.Call, hangUp func()) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: strings.Split(strings.TrimPrefix(c.nodes.URL(), "redis-cluster://"), ","), PoolSize: callers, DisableIdentity: true,
	})
	limiter := redis_rate.NewLimiter(rdb)
	return func(ctx context.Context, key uint64) (bool, error) {
		r, err := limiter.Allow(ctx, prefix+strconv.FormatUint(key, 10), limit)
		if err != nil {
			return false, err
		}
		return r.Allowed == 0, nil
	}, func() { _ = rdb.Close() }
}

// Caller returns a call of CL.THROTTLE with the same client for a number of callers, and a function that
// closes its connections.
func (s *Server) Caller(limit redis_rate.Limit, prefix string, callers int) (call load.Call, hangUp func()) {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr.String(), PoolSize: callers, DisableIdentity: true, MaxRetries: -1})
	maxBurst, seconds := limit.Burst-1, int(limit.Period/time.Second)
	return func(ctx context.Context, key uint64) (bool, error) {
		reply, err := rdb.Do(ctx, "CL.THROTTLE", prefix+strconv.FormatUint(key, 10), maxBurst, limit.Rate, seconds).Int64Slice()
		if err != nil {
			return false, err
		}
		if len(reply) != 5 {
			return false, errors.New("peer: CL.THROTTLE does not reply five numbers")
		}
		return reply[0] == 1, nil
	}, func() { _ = rdb.Close() }
}

// ThrottleBy is a CL.THROTTLE with redis_rate's limit.
func ThrottleBy(limit redis_rate.Limit, prefix string) load.Command {
	return load.NewCommand("CL.THROTTLE", prefix+load.KeyMark, strconv.Itoa(limit.Burst-1), strconv.Itoa(limit.Rate),
		strconv.Itoa(int(limit.Period/time.Second)), "1").LimitedBy('1')
}

// LimitThatDenies is Throttle's limit: quick calls are mostly limited.
func LimitThatDenies() redis_rate.Limit {
	return redis_rate.Limit{Rate: perMinute, Burst: burst + 1, Period: time.Minute}
}

// LimitThatAllows is ThrottlePass's limit: two hundred million calls in a row, each of which writes.
func LimitThatAllows() redis_rate.Limit {
	return redis_rate.Limit{Rate: 1, Burst: 200_000_001, Period: 20 * time.Second}
}

// LimitThatDrains allows a million calls in a second: its funnel is empty again before the next call.
func LimitThatDrains() redis_rate.Limit {
	return redis_rate.Limit{Rate: 1_000_000, Burst: 1_000_000, Period: time.Second}
}
