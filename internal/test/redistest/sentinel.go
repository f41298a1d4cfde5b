package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	sentinels        = 3
	sentinelReplicas = 2
	sentinelMaster   = "mymaster"
)

// SentinelNodes holds a master, its replicas and their sentinels in their initial roles.
type SentinelNodes struct {
	Master              *Process
	replicas, sentinels []*Process
}

// Sentinels runs a master, two replicas and three sentinels until the test ends. A master is replaced after a
// second of silence.
func Sentinels(t *testing.T) *SentinelNodes {
	t.Helper()
	s := &SentinelNodes{Master: Server(t, "--repl-diskless-sync-delay", "0")}
	err := s.launch(t.Context(), t.TempDir())
	endWith(t, slices.Concat(s.replicas, s.sentinels)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *SentinelNodes) launch(ctx context.Context, dir string) error {
	for i := range sentinelReplicas {
		own, err := subdirectory(dir, "replica"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		p, err := Launch(ctx, own, "--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Master.port))
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, p)
	}
	for i := range sentinels {
		p, err := s.launchSentinel(ctx, dir, i)
		if err != nil {
			return err
		}
		s.sentinels = append(s.sentinels, p)
	}
	return s.await(ctx)
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
		file := filepath.Join(own, "sentinel.conf")
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
		p.args = []string{file, "--sentinel"}
		return nil
	})
}

// URL returns the value for --store.
func (s *SentinelNodes) URL() string {
	return url("redis-sentinel", s.sentinels) + "/" + sentinelMaster
}

// await waits until all sentinels know one another and the replicas, and the replicas follow.
func (s *SentinelNodes) await(ctx context.Context) error {
	known := func(ctx context.Context, sentinel *redis.Client) bool {
		m, err := sentinel.Do(ctx, "SENTINEL", "MASTER", sentinelMaster).Slice()
		text := fmt.Sprint(m)
		return err == nil && strings.Contains(text, fmt.Sprintf("num-slaves %d ", sentinelReplicas)) &&
			strings.Contains(text, fmt.Sprintf("num-other-sentinels %d ", sentinels-1)) && strings.Contains(text, "flags master ")
	}
	if err := awaitAll(ctx, s.sentinels, "know the others", known); err != nil {
		return err
	}
	return awaitAll(ctx, s.replicas, "follow its master", func(ctx context.Context, replica *redis.Client) bool {
		info, err := replica.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}
