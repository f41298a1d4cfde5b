package failover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Kind is a kind of server.
type Kind struct {
	Name string
	Call string // how the programs charge: throttle or incr

	// command returns the command that starts a server of a pair; it may write files to its directory. The
	// first start of the pair makes the server without a leader the leader.
	command func(s *server, peer int, leader int) ([]string, error)
	// charge makes the call of the programs once.
	charge func(ctx context.Context, client *redis.Client, key string) error
	// charged returns the units of a key.
	charged func(ctx context.Context, client *redis.Client, key string) (int, error)
}

// password of all servers but the Sentinels.
const password = "s3cret"

// burst of the programs' keys, of which practically nothing leaks in a run: five hours a unit.
const (
	burst         = 200_000
	periodSeconds = 18_000
)

// Cellserver returns pairs of this program.
func Cellserver(binary string) Kind {
	return Kind{
		Name: "cellserver", Call: "throttle",
		command: func(s *server, peer, _ int) ([]string, error) {
			file := filepath.Join(s.dir, "password")
			if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
				return nil, fmt.Errorf("failover: write the password: %w", err)
			}
			return []string{
				binary, "--addr", s.addr, "--metrics-addr=", "--requirepass-file", file,
				"--repl-password-file", file, "--peer", address(peer), "--peer-wait", "0",
			}, nil
		},
		charge: func(ctx context.Context, client *redis.Client, key string) error {
			return client.Do(ctx, "CL.THROTTLE", key, burst-1, 1, periodSeconds).Err()
		},
		charged: func(ctx context.Context, client *redis.Client, key string) (int, error) {
			reply, err := client.Do(ctx, "CL.THROTTLE", key, burst-1, 1, periodSeconds, 0).Int64Slice()
			if err != nil {
				return 0, err
			}
			return int(burst - reply[2]), nil
		},
	}
}

// Redis returns pairs of redis-server, the control.
func Redis(binary string) Kind {
	return Kind{
		Name: "redis-server", Call: "incr",
		command: func(s *server, _, leader int) ([]string, error) {
			file := filepath.Join(s.dir, s.name+".conf")
			if _, err := os.Stat(file); err == nil {
				return []string{binary, file}, nil // as Sentinel had it rewritten
			}
			conf := fmt.Sprintf("port %d\nbind 127.0.0.1\nsave \"\"\nrepl-diskless-sync-delay 0\n", s.port)
			conf += fmt.Sprintf("requirepass %s\nmasterauth %s\n", password, password)
			if leader != s.port {
				conf += fmt.Sprintf("replicaof 127.0.0.1 %d\n", leader)
			}
			if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
				return nil, fmt.Errorf("failover: write redis-server's configuration: %w", err)
			}
			return []string{binary, file}, nil
		},
		charge: func(ctx context.Context, client *redis.Client, key string) error {
			return client.Incr(ctx, key).Err()
		},
		charged: func(ctx context.Context, client *redis.Client, key string) (int, error) {
			n, err := client.Get(ctx, key).Int()
			if errors.Is(err, redis.Nil) {
				return 0, nil
			}
			return n, err
		},
	}
}

// server is one of a pair.
type server struct {
	process

	port   int
	addr   string
	client *redis.Client // for looks
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// admin opens a client that reports each error.
func admin(port int, secret string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: address(port), Password: secret, Protocol: 2, MaxRetries: -1, DialerRetries: 1, PoolSize: 1,
		DialTimeout: time.Second, ReadTimeout: 3 * time.Second, DisableIdentity: true,
	})
}

func newServer(dir, name string, port int) (*server, error) {
	s := &server{process: process{name: name, dir: filepath.Join(dir, name)}, port: port, addr: address(port)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("failover: make a server's directory: %w", err)
	}
	s.client = admin(port, password)
	return s, nil
}

// close ends it and its client.
func (s *server) close() {
	s.stop()
	_ = s.client.Close()
}

// replication returns the fields of INFO replication.
func (s *server) replication(ctx context.Context) (map[string]string, error) {
	text, err := s.client.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
