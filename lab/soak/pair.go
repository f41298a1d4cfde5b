package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"cellserver/internal/test/patience"
	"cellserver/lab/soak/internal/link"
	"cellserver/lab/soak/internal/target"
)

// member is a server that leads or follows others. Those that follow it come by its link.
type member struct {
	name   string
	binary string
	dir    string // its log, and its data directory
	args   []string
	link   *link.Link
	log    *os.File

	server *target.Server // the running one
	ask    *redis.Client  // nil while there is none
}

// newMember returns a server that is not running yet. With data it has a data directory.
func newMember(name, binary, dir string, data bool, args ...string) (*member, error) {
	m := &member{name: name, binary: binary, dir: filepath.Join(dir, name)}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if m.link, err = link.Open(); err != nil {
		return nil, err
	}
	if m.log, err = os.Create(filepath.Join(m.dir, "log")); err != nil {
		return nil, err
	}
	host, port := m.address()
	m.args = append([]string{"--replica-announce-ip", host, "--replica-announce-port", port}, args...)
	if data {
		m.args = append(m.args, "--data-dir", filepath.Join(m.dir, "data"))
	}
	return m, nil
}

// address is where replicas reach it, also after a restart.
func (m *member) address() (host, port string) {
	host, port, _ = net.SplitHostPort(m.link.Addr) // the link's own address
	return host, port
}

// start starts the server.
func (m *member) start(ctx context.Context, args ...string) (err error) {
	m.server, err = target.Start(ctx, target.Spec{
		Binary: m.binary, Dir: m.dir, Args: append(m.args[:len(m.args):len(m.args)], args...), Plain: true, Log: m.log,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.link.Lead(m.server.TCP)
	m.ask = redis.NewClient(&redis.Options{
		Addr: m.server.TCP, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 2,
		DialTimeout: answerWithin, ReadTimeout: answerWithin, WriteTimeout: answerWithin,
	})
	return nil
}

// answerWithin bounds a question.
const answerWithin = time.Minute

// kill ends the server by SIGKILL.
func (m *member) kill() {
	if m.ask == nil {
		return
	}
	m.server.Kill()
	_ = m.ask.Close()
	m.ask = nil
}

func (m *member) close() {
	m.kill()
	m.link.Close()
	_ = m.log.Close()
}

// trouble returns lines of the log that no healthy server writes.
func (m *member) trouble() []string {
	if m.server == nil {
		return nil
	}
	return m.server.Trouble()
}

// follow makes it a replica of another one.
func (m *member) follow(ctx context.Context, leader *member) error {
	host, port := leader.address()
	if err := m.ask.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return fmt.Errorf("%s: REPLICAOF: %w", m.name, err)
	}
	return nil
}

// lead makes it the leader.
func (m *member) lead(ctx context.Context) error {
	if err := m.ask.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return fmt.Errorf("%s: REPLICAOF NO ONE: %w", m.name, err)
	}
	return nil
}

// info returns the fields of INFO replication.
func (m *member) info(ctx context.Context) (map[string]string, error) {
	text, err := m.ask.Info(ctx, "replication").Result()
	if err != nil {
		return nil, fmt.Errorf("%s: INFO: %w", m.name, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// offset returns the place in the stream.
func (m *member) offset(ctx context.Context) int64 {
	fields, err := m.info(ctx)
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(fields["slave_repl_offset"], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// awaitInfo waits until a field of INFO replication has a value.
func (m *member) awaitInfo(ctx context.Context, field, value string) error {
	var last map[string]string
	var err error
	met := patience.Until(func() bool {
		last, err = m.info(ctx)
		return err != nil || last[field] == value
	})
	if err != nil || met {
		return err
	}
	return fmt.Errorf("%s: %s does not become %s: %v", m.name, field, value, last)
}

// inStep waits until it follows, with all states.
func (m *member) inStep(ctx context.Context) error {
	return m.awaitInfo(ctx, "master_link_status", "up")
}

// setMinReplicas has a leader require replicas.
func (m *member) setMinReplicas(ctx context.Context, n int) error {
	return m.ask.ConfigSet(ctx, "min-replicas-to-write", strconv.Itoa(n)).Err()
}

// fillDisk has all writes to files fail, as on a full disk, or ends that.
func (m *member) fillDisk(full bool) error {
	var limit unix.Rlimit
	pid := m.server.PID()
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		return fmt.Errorf("%s: limit of files: %w", m.name, err)
	}
	if limit.Cur = limit.Max; full {
		limit.Cur = 0
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		return fmt.Errorf("%s: limit of files: %w", m.name, err)
	}
	return nil
}

func (m *member) stop() error { return m.server.Signal(syscall.SIGSTOP) }

func (m *member) goOn() error { return m.server.Signal(syscall.SIGCONT) }

// peak returns the largest resident set so far, in bytes.
func (m *member) peak() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.server.PID()))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0
	}
	return kib << 10
}

// logged counts the lines of the log with a text.
func (m *member) logged(text string) int {
	all, err := os.ReadFile(m.log.Name())
	if err != nil {
		return 0
	}
	return strings.Count(string(all), text)
}

// tail writes the end of the log.
func (m *member) tail(out io.Writer) {
	all, err := os.ReadFile(m.log.Name())
	if err != nil {
		return
	}
	const most = 4 << 10
	_, _ = fmt.Fprintf(out, "the end of %s's log:\n%s\n", m.name, all[max(0, len(all)-most):])
}

// caughtUp waits until replicas have all that was changed on a leader.
func caughtUp(ctx context.Context, leader *member, replicas int) error {
	const atMost = 30_000
	n, err := leader.ask.Do(ctx, "WAIT", replicas, atMost).Int()
	if err == nil && n < replicas {
		err = errors.New("no replica takes the last changes")
	}
	if err != nil {
		return fmt.Errorf("%s: WAIT: %w", leader.name, err)
	}
	return nil
}
