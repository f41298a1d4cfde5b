package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Process is a redis-server on a loopback port. Its methods are not safe for concurrent use.
type Process struct {
	Addr  string // the proxy's, if there is one
	Proxy *Proxy // may be nil

	port, busPort int
	dir           string
	args          []string
	running       *processtest.Process // nil before the first start
	log           processtest.Log
	client        *redis.Client
}

// Server runs a redis-server, which the test then needs, until the test ends.
func Server(t *testing.T, args ...string) *Process {
	t.Helper()
	processtest.Need(t, "redis-server")
	p, err := Launch(t.Context(), t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, p)
	return p
}

// endWith ends processes with the test, and prints their logs on failure.
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

// Launch runs a redis-server with its files in dir, for programs. It ends with Close or with this process.
func Launch(ctx context.Context, dir string, args ...string) (*Process, error) {
	return launch(ctx, dir, args, func(*Process) error { return nil })
}

// launch starts a redis-server after configure, and retries when another process takes its ports.
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

func prepare(dir string, args []string) (*Process, error) {
	port, err := freePort()
	busPort, busErr := freePort()
	if err := errors.Join(err, busErr); err != nil {
		return nil, err
	}
	p := &Process{port: port, busPort: busPort, dir: dir}
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

// password returns the value of --requirepass.
func (p *Process) password() string {
	if i := slices.Index(p.args, "--requirepass"); i >= 0 {
		return p.args[i+1]
	}
	return ""
}

// Restart starts a killed server with the same port and files.
func (p *Process) Restart(ctx context.Context) error {
	// Arguments after the file name are settings. A sentinel requires a file that it may write.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "redis-server", p.args...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	endWithParent(cmd)
	var err error
	if p.running, err = processtest.Run(cmd); err != nil {
		return fmt.Errorf("redistest: start redis-server: %w", err)
	}
	return p.await(ctx, "answer", func(ctx context.Context) bool {
		err := p.client.Ping(ctx).Err()
		var refused redis.Error
		return err == nil || errors.As(err, &refused) && !strings.HasPrefix(err.Error(), "LOADING")
	})
}

func (p *Process) await(ctx context.Context, what string, cond func(context.Context) bool) error {
	met := false
	patience.Until(func() bool {
		asking, done := context.WithTimeout(ctx, askAgain)
		defer done()
		met = cond(asking)
		return met || p.running.HasExited() || ctx.Err() != nil
	})
	switch {
	case met:
		return nil
	case p.running.HasExited():
		return fmt.Errorf("redistest: redis-server at %s ended: %s", p.Addr, p.log.String())
	default:
		err := cmp.Or(ctx.Err(), patience.ErrIdle)
		return fmt.Errorf("redistest: redis-server at %s does not %s: %w", p.Addr, what, err)
	}
}

// awaitAll awaits a condition of each process.
func awaitAll(ctx context.Context, all []*Process, what string, cond func(ctx context.Context, c *redis.Client) bool) error {
	for _, p := range all {
		if err := p.await(ctx, what, func(ctx context.Context) bool { return cond(ctx, p.client) }); err != nil {
			return err
		}
	}
	return nil
}

// url returns the value for --store of several servers.
func url(scheme string, all []*Process) string {
	addrs := make([]string, len(all))
	for i, p := range all {
		addrs[i] = p.Addr
	}
	return scheme + "://" + strings.Join(addrs, ",")
}

// askAgain limits an unanswered question, whose connection may lead to a server that has ended.
const askAgain = 10 * time.Second

// Client returns a client without retries that bypasses the proxy. It is closed with the server.
func (p *Process) Client() *redis.Client { return p.client }

func (p *Process) Kill() {
	if p.running != nil {
		p.running.Kill()
	}
}

func (p *Process) PID() int { return p.running.Cmd.Process.Pid }

func (p *Process) Close() {
	_ = p.client.Close()
	if p.Proxy != nil {
		p.Proxy.Close()
	}
	p.Kill()
}

// freePort returns a port below the system's ephemeral range, so other processes rarely take it meanwhile.
func freePort() (int, error) {
	l, err := processtest.Listen()
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func subdirectory(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	return path, nil
}
