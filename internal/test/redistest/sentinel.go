package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
)

const (
	sentinels        = 3
	sentinelReplicas = 2
	sentinelMaster   = "mymaster"
)

// SentinelNodes holds a master, its replicas and their sentinels in their initial roles.
type SentinelNodes struct {
	Master    *Process
	Replicas  []*Process
	Sentinels []*Process
}

// Sentinels runs a master, two replicas and three sentinels until the test ends. A master is replaced after a
// second of silence. args are the servers' arguments.
func Sentinels(t *testing.T, args ...string) *SentinelNodes {
	t.Helper()
	processtest.Need(t, "redis-server")
	s := &SentinelNodes{}
	err := s.launch(t.Context(), t.TempDir(), args)
	endWith(t, s.All()...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *SentinelNodes) launch(ctx context.Context, dir string, args []string) error {
	for i := range 1 + sentinelReplicas {
		own, err := subdirectory(dir, "server"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		all := append([]string{"--repl-diskless-sync-delay", "0"}, args...)
		if i > 0 {
			all = append(all, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Master.port))
			if password := s.Master.password(); password != "" {
				all = append(all, "--masterauth", password)
			}
		}
		p, err := Launch(ctx, own, all...)
		if err != nil {
			return err
		}
		if i == 0 {
			s.Master = p
		} else {
			s.Replicas = append(s.Replicas, p)
		}
	}
	for i := range sentinels {
		p, err := s.launchSentinel(ctx, dir, i)
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, p)
	}
	return s.Await(ctx)
}

// launchSentinel starts a sentinel with its own writable file, which it requires.
func (s *SentinelNodes) launchSentinel(ctx context.Context, dir string, i int) (*Process, error) {
	own, err := subdirectory(dir, "sentinel"+strconv.Itoa(i))
	if err != nil {
		return nil, err
	}
	return launch(ctx, own, nil, func(p *Process) error {
		lines := []string{
			"port " + strconv.Itoa(p.port), "bind 127.0.0.1", "dir " + own,
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", sentinelMaster, s.Master.port),
			"sentinel down-after-milliseconds " + sentinelMaster + " 1000",
			"sentinel failover-timeout " + sentinelMaster + " 5000",
		}
		if password := s.Master.password(); password != "" {
			lines = append(lines, "sentinel auth-pass "+sentinelMaster+" "+password)
		}
		file := filepath.Join(own, "sentinel.conf")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
		p.args = []string{file, "--sentinel"}
		return nil
	})
}

func (s *SentinelNodes) All() []*Process {
	var all []*Process
	if s.Master != nil {
		all = append(all, s.Master)
	}
	return append(append(all, s.Replicas...), s.Sentinels...)
}

// URL returns the value for --store.
func (s *SentinelNodes) URL() string {
	return url("redis-sentinel", s.Sentinels) + "/" + sentinelMaster
}

// Await waits until all sentinels know one another and the replicas, and the replicas follow.
func (s *SentinelNodes) Await(ctx context.Context) error {
	known := func(ctx context.Context, sentinel *redis.Client) bool {
		m, err := sentinel.Do(ctx, "SENTINEL", "MASTER", sentinelMaster).Slice()
		text := fmt.Sprint(m)
		return err == nil && strings.Contains(text, fmt.Sprintf("num-slaves %d ", sentinelReplicas)) &&
			strings.Contains(text, fmt.Sprintf("num-other-sentinels %d ", sentinels-1)) && strings.Contains(text, "flags master ")
	}
	if err := awaitAll(ctx, s.Sentinels, "know the others", known); err != nil {
		return err
	}
	return awaitAll(ctx, s.Replicas, "follow its master", func(ctx context.Context, replica *redis.Client) bool {
		info, err := replica.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}
