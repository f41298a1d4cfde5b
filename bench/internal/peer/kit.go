package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The peers' names.
const (
	Cellserver   = "cellserver"
	Redis        = "redis-server"
	RedisCell    = "redis-cell"
	Throttlecrab = "throttlecrab"
	Floor        = "C floor"
)

// Kit holds the programs of the servers.
type Kit struct {
	dir        string // for builds and the output of servers; removed by Close
	data       string // in which servers keep their data; removed by Close
	cellserver string
	floor      string
	redis      string
	module     string
	crab       string
	rateLimit  string
	nginx      string
	control    []string

	// Missing says why each missing peer cannot be started, and what to do about it.
	Missing map[string]string
	// Versions holds the version of each peer.
	Versions map[string]string
}

// Source says where the programs are.
type Source struct {
	Dir          string // of cellserver's module
	Binary       string // of cellserver; empty to build it
	RedisCell    string // the module's file; empty to skip it
	Throttlecrab string // the binary; empty to skip it
	RateLimit    string // the binary of envoyproxy/ratelimit; empty to skip it
	Data         string // a directory of the file system to which servers write; empty for the system's temporary one
	// Control is the command line of control.Serve, but for the name.
	Control []string
}

// Prepare builds cellserver and the floor, and finds the rest.
func Prepare(ctx context.Context, source Source) (*Kit, error) {
	dir, err := os.MkdirTemp("", "cellserver-bench-")
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	k := &Kit{
		dir: dir, module: source.RedisCell, crab: source.Throttlecrab, rateLimit: source.RateLimit, control: source.Control,
		Missing: map[string]string{}, Versions: map[string]string{},
	}
	if err := k.prepare(ctx, source); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// Close removes what the kit built.
func (k *Kit) Close() { _ = errors.Join(os.RemoveAll(k.dir), os.RemoveAll(k.data)) }

// DataDir makes a directory in which a server keeps its data.
func (k *Kit) DataDir() (string, error) {
	dir, err := os.MkdirTemp(k.data, "")
	if err != nil {
		return "", fmt.Errorf("peer: %w", err)
	}
	return dir, nil
}

func (k *Kit) prepare(ctx context.Context, source Source) error {
	var err error
	if k.data, err = os.MkdirTemp(source.Data, "cellserver-bench-data-"); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	if k.cellserver, err = k.buildCellserver(ctx, source); err != nil {
		return err
	}
	if k.redis, err = exec.LookPath("redis-server"); err != nil {
		return errors.New("peer: redis-server is missing, the reference of all comparisons; apt-get install redis-server")
	}
	k.Versions[Cellserver] = version(ctx, k.cellserver)
	k.Versions[Redis] = version(ctx, k.redis)
	if err := k.buildFloor(ctx, source.Dir); err != nil {
		k.Missing[Floor] = err.Error()
	}
	k.findNginx(ctx)
	k.optional(RedisCell, k.module, "REDIS_CELL_SO")
	k.optional(RateLimit, k.rateLimit, "RATELIMIT_BIN")
	if k.optional(Throttlecrab, k.crab, "THROTTLECRAB_BIN") {
		k.Versions[Throttlecrab] = version(ctx, k.crab)
	}
	return nil
}

// optional checks whether the file of a peer exists.
func (k *Kit) optional(name, file, variable string) bool {
	if file == "" {
		k.Missing[name] = "set " + variable + " to its file"
		return false
	}
	if _, err := os.Stat(file); err != nil {
		k.Missing[name] = fmt.Sprintf("%s: %v", variable, err)
		return false
	}
	return true
}

func (k *Kit) buildCellserver(ctx context.Context, source Source) (string, error) {
	if source.Binary != "" {
		return filepath.Abs(source.Binary)
	}
	if b, err := os.ReadFile(filepath.Join(source.Dir, "go.mod")); err != nil || !bytes.HasPrefix(b, []byte("module cellserver\n")) {
		return "", fmt.Errorf("peer: %s is not cellserver's source; run in bench/ or give --source", source.Dir)
	}
	binary := filepath.Join(k.dir, "cellserver")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/cellserver")
	cmd.Dir = source.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("peer: building cellserver: %w: %s", err, bytes.TrimSpace(out))
	}
	return binary, nil
}

func (k *Kit) buildFloor(ctx context.Context, dir string) error {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return errors.New("no C compiler; apt-get install gcc libc6-dev")
	}
	binary := filepath.Join(k.dir, "floor")
	cmd := exec.CommandContext(ctx, cc, "-O2", "-o", binary, filepath.Join(dir, "bench", "floor", "floor.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cc: %w: %s", err, bytes.TrimSpace(out))
	}
	k.floor = binary
	k.Versions[Floor] = "built by " + version(ctx, cc)
	return nil
}

// version returns the first line of a program's version output.
func version(ctx context.Context, program string) string {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// HasFlag reports whether cellserver has a flag, such as "io-threads".
func (k *Kit) HasFlag(ctx context.Context, flag string) bool {
	out, err := exec.CommandContext(ctx, k.cellserver, "--help").Output()
	return err == nil && regexp.MustCompile(`(?m)^ .*--`+regexp.QuoteMeta(flag)+`\b`).Match(out)
}

// maxClients is more than the connections of any scenario.
const maxClients = "12000"

// StartCellserver starts cellserver with additional flags.
func (k *Kit) StartCellserver(ctx context.Context, flags ...string) (*Server, error) {
	return start(ctx, spec{
		name: Cellserver,
		argv: append([]string{k.cellserver, "--addr", "127.0.0.1:0", "--metrics-addr", "", "--maxclients", maxClients}, flags...),
		told: regexp.MustCompile(`msg=ready .*tcp=127\.0\.0\.1:(\d+)`),
		dir:  k.dir,
	})
}

// StartLoading starts cellserver with a data directory. It returns once the server listens: see AwaitLoaded.
func (k *Kit) StartLoading(ctx context.Context, dir string) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	argv := []string{k.cellserver, "--addr", fmt.Sprintf("127.0.0.1:%d", port), "--metrics-addr", "", "--data-dir", dir}
	return start(ctx, spec{name: Cellserver, argv: argv, port: port, dir: k.dir})
}

// StartFloor starts bench/floor/floor.c.
func (k *Kit) StartFloor(ctx context.Context) (*Server, error) {
	return start(ctx, spec{name: Floor, argv: []string{k.floor}, told: regexp.MustCompile(`^(\d+)$`), dir: k.dir})
}

// StartRedis starts a redis-server that writes nothing to disk.
func (k *Kit) StartRedis(ctx context.Context) (*Server, error) {
	return k.startRedis(ctx, Redis)
}

// StartRedisSynced is StartRedis with a log in a directory that is synced before each reply.
func (k *Kit) StartRedisSynced(ctx context.Context, dir string) (*Server, error) {
	return k.startRedis(ctx, Redis, synced(dir)...)
}

// synced are flags of a redis-server.
func synced(dir string) []string {
	return []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", "always"}
}

// StartRedisCellSynced is StartRedisCell with a log in a directory that is synced before each reply.
func (k *Kit) StartRedisCellSynced(ctx context.Context, dir string) (*Server, error) {
	return k.startRedisCell(ctx, synced(dir)...)
}

// StartRedisCell starts a redis-server with the redis-cell module.
func (k *Kit) StartRedisCell(ctx context.Context) (*Server, error) { return k.startRedisCell(ctx) }

func (k *Kit) startRedisCell(ctx context.Context, flags ...string) (*Server, error) {
	module, err := filepath.Abs(k.module)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	s, err := k.startRedis(ctx, RedisCell, append([]string{"--loadmodule", module}, flags...)...)
	if err != nil {
		return nil, err
	}
	if k.Versions[RedisCell] == "" {
		k.Versions[RedisCell] = moduleVersion(ctx, s)
	}
	return s, nil
}

func (k *Kit) startRedis(ctx context.Context, name string, flags ...string) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	argv := []string{
		k.redis, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", k.dir, "--maxclients", maxClients,
	}
	s, err := start(ctx, spec{name: name, argv: append(argv, flags...), port: port, dir: k.dir})
	if err != nil {
		return nil, err
	}
	if err := isOurs(ctx, s); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// StartThrottlecrab starts it with its Redis transport only.
func (k *Kit) StartThrottlecrab(ctx context.Context) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	return start(ctx, spec{
		name: Throttlecrab,
		argv: []string{k.crab, "--redis", "--redis-host", "127.0.0.1", "--redis-port", strconv.Itoa(port), "--log-level", "error"},
		port: port,
		dir:  k.dir,
	})
}
