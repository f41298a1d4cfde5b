package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// Process is a redis-server with a port of its own on loopback. Its methods are not safe for concurrent use.
type Process struct {
	Addr  string // where clients find it: its proxy, if it has one
	Proxy *Proxy // nil without

	port, busPort int
	dir           string
	args          []string
	cmd           *exec.Cmd
	exited        chan struct{}
	log           processtest.Log
	client        *redis.Client
}

// Server runs a redis-server on a free port of loopback until the test ends. Without a redis-server the test is skipped,
// but fails in CI.
func Server(t *testing.T, args ...string) *Process {
	t.Helper()
	need(t)
	p, err := Launch(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, p)
	return p
}

func need(t *testing.T) { processtest.Need(t, "redis-server", "redis-server") }

// endWith ends processes with the test, and shows what they have logged if it fails.
func endWith(t *testing.T, processes ...*Process) {
	t.Cleanup(func() {
		for _, p := range processes {
			p.Close()
			if t.Failed() {
				t.Logf("the log of %s:\n%s", p.Addr, p.log.String())
			}
		}
	})
}

// Launch runs a redis-server that keeps its files in dir, for programs that are no tests. It ends with Close, and when this
// process ends.
func Launch(ctx context.Context, dir string, args ...string) (*Process, error) {
	return launch(ctx, dir, args, func(*Process) error { return nil })
}

// launch starts a redis-server, after configure, on other ports if another process takes these first.
func launch(ctx context.Context, dir string, args []string, configure func(p *Process) error) (*Process, error) {
	for attempt := 1; ; attempt++ {
		p, err := prepare(dir, args)
		if err != nil {
			return nil, err
		}
		if err = configure(p); err == nil {
			err = p.Restart(ctx)
		}
		if err == nil {
			return p, nil
		}
		p.Close()
		if attempt == 5 || !strings.Contains(p.log.String(), "Address already in use") {
			return nil, err
		}
	}
}

// prepare chooses ports.
func prepare(dir string, args []string) (*Process, error) {
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	p := &Process{port: ports[0], busPort: ports[1], dir: dir}
	p.Addr = p.ownAddr()
	p.args = append([]string{"--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}, args...)
	options := &redis.Options{
		Addr: p.Addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true,
		Password: p.password(), DialTimeout: askAgain, ReadTimeout: askAgain, WriteTimeout: askAgain,
	}
	p.client = redis.NewClient(options)
	return p, nil
}

func (p *Process) ownAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// password returns the one that the server takes: the last.
func (p *Process) password() string {
	for i, arg := range slices.Backward(p.args) {
		if arg == "--requirepass" && i+1 < len(p.args) {
			return p.args[i+1]
		}
	}
	return ""
}

// Restart starts the server again after Kill, with the same port and files.
func (p *Process) Restart(ctx context.Context) error {
	// Arguments after a file's name are settings, and a file that Redis may write is what a sentinel requires.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), "redis-server", p.args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	endWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("redistest: start redis-server: %w", err)
	}
	p.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(p.cmd, p.exited)
	return p.await(ctx, "answer", func(ctx context.Context) bool {
		err := p.client.Ping(ctx).Err()
		var refused redis.Error
		return err == nil || errors.As(err, &refused) && !strings.HasPrefix(err.Error(), "LOADING")
	})
}

// await asks again and again until cond is true.
func (p *Process) await(ctx context.Context, what string, cond func(context.Context) bool) error {
	met := false
	patience.Until(func() bool {
		asking, done := context.WithTimeout(ctx, askAgain)
		defer done()
		met = cond(asking)
		return met || p.hasExited() || ctx.Err() != nil
	})
	switch {
	case met:
		return nil
	case p.hasExited():
		return fmt.Errorf("redistest: redis-server at %s ended: %s", p.Addr, p.log.String())
	default:
		err := cmp.Or(ctx.Err(), patience.ErrIdle)
		return fmt.Errorf("redistest: redis-server at %s does not %s: %w", p.Addr, what, err)
	}
}

// askAgain is after how long an unanswered question is asked again, as its connection may lead to a server
// that has gone.
const askAgain = 10 * time.Second

func (p *Process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Client returns a client without retries that goes around the proxy. It is closed with the server.
func (p *Process) Client() *redis.Client { return p.client }

// Kill ends the server as kill -9 does.
func (p *Process) Kill() {
	if p.exited == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// CPUSeconds returns the CPU time of all its threads since it was started.
func (p *Process) CPUSeconds() (float64, error) { return cpuSeconds(p.cmd.Process.Pid) }

// Close ends the server and its proxy.
func (p *Process) Close() {
	_ = p.client.Close()
	if p.Proxy != nil {
		p.Proxy.Close()
	}
	p.Kill()
}

// freePort returns a port below those that the system chooses, so others will hardly take it meanwhile.
func freePort() (int, error) {
	const lowestPort, highestPort = 10_000, 32_000
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}); err == nil {
			_ = l.Close()
			return port, nil
		}
	}
	return 0, errors.New("redistest: no free port")
}

// subdirectory makes a directory for one of several servers.
func subdirectory(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	return path, nil
}
