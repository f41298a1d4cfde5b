package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// name of the pair, as the Sentinels and clients have it.
const name = "mymaster"

// Settings are those of the Sentinels.
type Settings struct {
	DownAfter       time.Duration
	FailoverTimeout time.Duration
	ParallelSyncs   int
}

// sentinels are the trio that watches a pair.
type sentinels struct {
	processes []*process
	ports     []int
	clients   []*redis.SentinelClient
}

// startSentinels starts a trio; the binary is redis-server.
func startSentinels(
	ctx context.Context, binary, dir string, ports []int, leader int, s Settings,
) (*sentinels, error) {
	trio := &sentinels{ports: ports}
	for i, port := range ports {
		p := &process{name: fmt.Sprintf("sentinel%d", i)}
		p.dir = filepath.Join(dir, p.name)
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			return trio, fmt.Errorf("failover: make a Sentinel's directory: %w", err)
		}
		file := filepath.Join(p.dir, "sentinel.conf")
		if err := os.WriteFile(file, []byte(s.conf(p.dir, port, leader)), 0o600); err != nil {
			return trio, fmt.Errorf("failover: write a Sentinel's configuration: %w", err)
		}
		p.argv = []string{binary, file, "--sentinel"}
		if err := p.start(ctx); err != nil {
			return trio, err
		}
		trio.processes = append(trio.processes, p)
		trio.clients = append(trio.clients, redis.NewSentinelClient(&redis.Options{
			Addr: address(port), Protocol: 2, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, DisableIdentity: true,
		}))
	}
	return trio, nil
}

func (s Settings) conf(dir string, port, leader int) string {
	return fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %s 127.0.0.1 %d 2
sentinel auth-pass %s %s
sentinel down-after-milliseconds %s %d
sentinel failover-timeout %s %d
sentinel parallel-syncs %s %d
`, port, dir, name, leader, name, password,
		name, s.DownAfter.Milliseconds(), name, s.FailoverTimeout.Milliseconds(), name, s.ParallelSyncs)
}

func (t *sentinels) close() {
	for i, p := range t.processes {
		_ = t.clients[i].Close()
		p.stop()
	}
}

// addresses returns host:port of each, separated by commas.
func (t *sentinels) addresses() string {
	var all []string
	for _, port := range t.ports {
		all = append(all, address(port))
	}
	return strings.Join(all, ",")
}

// named returns nil once all give this leader to clients.
func (t *sentinels) named(ctx context.Context, leader int) error {
	for i, client := range t.clients {
		addr, err := client.GetMasterAddrByName(ctx, name).Result()
		if err != nil {
			return fmt.Errorf("failover: sentinel%d: %w", i, err)
		}
		if addr[1] != strconv.Itoa(leader) {
			return fmt.Errorf("failover: sentinel%d: the leader is %s", i, addr[1])
		}
	}
	return nil
}

// agree returns nil once all have this leader, and this replica that could be promoted.
func (t *sentinels) agree(ctx context.Context, leader, replica int) error {
	for i, client := range t.clients {
		master, err := client.Master(ctx, name).Result()
		if err == nil {
			err = expect(master, map[string]string{
				"port": strconv.Itoa(leader), "flags": "master", "role-reported": "master",
				"num-slaves": "1", "num-other-sentinels": "2",
			})
		}
		if err != nil {
			return fmt.Errorf("failover: sentinel%d: the leader: %w", i, err)
		}
		replicas, err := client.Replicas(ctx, name).Result()
		if err == nil && len(replicas) != 1 {
			err = fmt.Errorf("%d replicas", len(replicas))
		}
		if err == nil {
			err = expect(replicas[0], map[string]string{
				"port": strconv.Itoa(replica), "flags": "slave", "master-link-status": "ok", "master-port": strconv.Itoa(leader),
			})
		}
		if err == nil && replicas[0]["slave-priority"] == "0" {
			err = errors.New("its priority is 0")
		}
		if err != nil {
			return fmt.Errorf("failover: sentinel%d: the replica: %w", i, err)
		}
	}
	return nil
}

func expect(fields, want map[string]string) error {
	for field, value := range want {
		if fields[field] != value {
			return fmt.Errorf("%s is %q, want %q", field, fields[field], value)
		}
	}
	return nil
}

// failover has the first Sentinel change the leader.
func (t *sentinels) failover(ctx context.Context) error {
	return t.clients[0].Failover(ctx, name).Err()
}
