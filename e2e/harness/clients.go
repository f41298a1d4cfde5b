package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
)

// RedisTool returns one of Redis's programs, connected to p and without the user's own settings.
func RedisTool(t *testing.T, p *Process, tool string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := processtest.Command(t, processtest.Need(t, tool), append([]string{"-h", "127.0.0.1", "-p", p.Port()}, args...)...)
	cmd.Env = []string{"TERM=xterm", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// GoRedis returns a client, and fails the test if go-redis logs anything.
func GoRedis(t *testing.T, o redis.Options) *redis.Client {
	t.Helper()
	log := &redisLog{}
	redis.SetLogger(log)
	t.Cleanup(func() { // after the client has been closed
		log.mu.Lock()
		defer log.mu.Unlock()
		for _, line := range log.lines {
			t.Error("go-redis logged:", line)
		}
	})
	return redistest.NewClient(t, o)
}

type redisLog struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *redisLog) Printf(_ context.Context, format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, v...))
}
