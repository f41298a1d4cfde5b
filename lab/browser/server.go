package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// server is a cellserver built from the parent directory, on free ports.
type server struct {
	redis string // host:port
	page  string // URL
	stop  func()
}

// startServer starts a server that sees the given host name, or the real one if it is empty.
func startServer(ctx context.Context, stderr io.Writer, host string, args ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "cellserver")
	if err != nil {
		return nil, err
	}
	removeDir := func() { _ = os.RemoveAll(dir) }
	binary := filepath.Join(dir, "cellserver")
	build := exec.CommandContext(ctx, "go", "build", "-pgo=off", "-trimpath", "-o", binary, "./cmd/cellserver")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = stderr
	if err := build.Run(); err != nil {
		removeDir()
		return nil, fmt.Errorf("go build: %w", err)
	}
	args = append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--log-format", "json"}, args...)
	command := append([]string{binary}, args...)
	if host != "" {
		command = append([]string{"unshare", "--user", "--map-root-user", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`, host}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // it was built here
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		removeDir()
		return nil, err
	}
	s := &server{stop: func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		removeDir()
	}}
	if err := s.waitReady(log, stderr); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// waitReady reads the log up to the line with the addresses and copies earlier lines to stderr.
func (s *server) waitReady(log io.Reader, stderr io.Writer) error {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, TCP, Metrics string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "ready" {
			s.redis, s.page = line.TCP, "http://"+line.Metrics+"/"
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return nil
		}
		_, _ = fmt.Fprintln(stderr, lines.Text())
	}
	return errors.New("the server did not become ready")
}

const (
	loadClients = 24
	loadKeys    = 20_000
	batchCalls  = 20
)

// newClient returns a client with timeouts for a busy machine.
func newClient(addr string, db int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, DB: db, PoolSize: loadClients, DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // which the page would show as errors
	})
}

// loadNamed calls the named limits of limits.yml and a window until ctx is done.
func loadNamed(ctx context.Context, addr string) error {
	rdb := newClient(addr, 0)
	defer func() { _ = rdb.Close() }()
	n := 0
	return repeat(ctx, rdb, func(pipe redis.Pipeliner) (pause time.Duration) {
		for i, limit := range []string{"api", "api", "search", "login", "exports", "mail", "signup"} {
			if n%(i+1) == 0 {
				pipe.Do(ctx, "CL.CHECK", limit, "tenant-"+strconv.Itoa((n*n)%50))
			}
		}
		pipe.Do(ctx, "CL.CHECK", "api", []string{"acme", "initech", "mallory"}[n%3])
		pipe.Do(ctx, "CL.FIXEDWINDOW", "reports:"+strconv.Itoa(n%20), 20, 60)
		n++
		return 10 * time.Millisecond
	})
}

// loadNewKeys calls a key once and never again until ctx is done.
func loadNewKeys(ctx context.Context, addr string) error {
	rdb := newClient(addr, 0)
	defer func() { _ = rdb.Close() }()
	n := 0
	return repeat(ctx, rdb, func(pipe redis.Pipeliner) (pause time.Duration) {
		for range 500 {
			pipe.Do(ctx, "CL.THROTTLE", "session:"+strconv.Itoa(n), 15, 30, 3600, 1)
			n++
		}
		return 20 * time.Millisecond
	})
}

// repeat sends what fill puts into a pipeline, again and again, until ctx is done.
func repeat(ctx context.Context, rdb *redis.Client, fill func(pipe redis.Pipeliner) (pause time.Duration)) error {
	for ctx.Err() == nil {
		pipe := rdb.Pipeline()
		pause := fill(pipe)
		if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// load calls a few keys often and most of them rarely, in waves, until ctx is done.
func load(ctx context.Context, addr string) error {
	rdb := newClient(addr, 0)
	defer func() { _ = rdb.Close() }()
	ended := make(chan error, loadClients)
	for i := range loadClients {
		go func() { ended <- loadClient(ctx, rdb, uint64(i)) }()
	}
	var err error
	for range loadClients {
		err = errors.Join(err, <-ended)
	}
	return err
}

func loadClient(ctx context.Context, rdb *redis.Client, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a load needs no secrets
	keys := rand.NewZipf(random, 1.1, 4, loadKeys)
	start := time.Now()
	return repeat(ctx, rdb, func(pipe redis.Pipeliner) (pause time.Duration) {
		for range batchCalls {
			pipe.Do(ctx, "CL.THROTTLE", "user:"+strconv.FormatUint(keys.Uint64(), 10), 15, 30, 60, 1)
		}
		wave := 1 + 0.7*math.Sin(2*math.Pi*time.Since(start).Seconds()/40)
		return time.Duration((20 + 40*random.Float64()) / wave * float64(time.Millisecond))
	})
}
