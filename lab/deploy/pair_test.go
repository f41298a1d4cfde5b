package deploytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
	"cellserver/internal/test/redistest"
	"cellserver/lab/internal/built"
)

// pair runs two servers and three Sentinels as manifests say, each at a loopback address of its own.
type pair struct {
	dir, network       string
	port, sentinelPort string
	binary             string
	env                []string
	places             []string // texts of the manifests, each followed by its replacement
	runs               func(name string) container
	servers            [2]*processtest.Process
	sentinels          [3]*processtest.Process
}

// container is what a container runs: a command, or else the server, with an environment.
type container struct {
	command []string
	env     map[string]string
	places  []string
}

const (
	replicaPassword  = "replica0123"
	sentinelPassword = "sentinel0123"
)

func newPair(t *testing.T, users string) *pair {
	t.Helper()
	server, client := processtest.Need(t, "redis-server"), processtest.Need(t, "redis-cli")
	_, port, _ := strings.Cut(processtest.FreeAddr(t), ":")
	_, sentinelPort, _ := strings.Cut(processtest.FreeAddr(t), ":")
	p := &pair{dir: t.TempDir(), network: loopbackNetwork(t),
		port: port, sentinelPort: sentinelPort, binary: built.Server(t)}
	bin := filepath.Join(p.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"redis-server": `exec ` + server + ` "$@" --bind "$ADDRESS"`, // containers have their addresses to themselves
		"redis-cli":    `exec ` + client + ` -h "${ADDRESS:-127.0.0.1}" "$@"`,
	} {
		path := write(t, bin, name, "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"requirepass": serverPassword, "replica": replicaPassword, "sentinel": sentinelPassword, "users.acl": users,
	} {
		write(t, p.dir, name, text)
	}
	p.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	p.places = []string{ // with patience for a busy machine
		"down-after-milliseconds cellserver 3000", "down-after-milliseconds cellserver 10000",
		"failover-timeout cellserver 10000", "failover-timeout cellserver 60000",
		"26379", p.sentinelPort, "6380", p.port, ":9380", "127.0.0.1:0",
	}
	return p
}

func (p *pair) server(i int) (address string)   { return fmt.Sprint(p.network, 11+i) }
func (p *pair) sentinel(i int) (address string) { return fmt.Sprint(p.network, 21+i) }

// start starts a container, whose data is in a directory of its own.
func (p *pair) start(t *testing.T, c container, address string) *processtest.Process {
	t.Helper()
	return processtest.Start(t, p.command(t, c, address))
}

func (p *pair) command(t *testing.T, c container, address string) *exec.Cmd {
	t.Helper()
	places := strings.NewReplacer(slices.Concat(c.places, p.places)...)
	command := []string{p.binary}
	if c.command != nil {
		command = slices.Clone(c.command)
		for i := range command {
			command[i] = places.Replace(command[i])
		}
	}
	cmd := processtest.Command(t, command[0], command[1:]...)
	cmd.Env = append(slices.Clone(p.env), "ADDRESS="+address)
	for name, value := range c.env {
		cmd.Env = append(cmd.Env, name+"="+places.Replace(value))
	}
	if c.command == nil {
		cmd.Env = append(cmd.Env, "CELLSERVER_ADDR="+address+":"+p.port, "CELLSERVER_METRICS_ADDR=127.0.0.1:0",
			"CELLSERVER_MAXMEMORY=900mb", "CELLSERVER_LOG_FORMAT=text")
	}
	return cmd
}

// data returns a container's directory.
func (p *pair) data(t *testing.T, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(p.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (p *pair) connect(t *testing.T, address, port string) *redis.Client {
	t.Helper()
	return redistest.NewClient(t, redis.Options{Addr: address + ":" + port, Password: serverPassword,
		DialerRetries: 1, Protocol: 2, DisableIdentity: true})
}

// replication returns a field of a server's INFO.
func (p *pair) replication(t *testing.T, i int, field string) (value string) {
	t.Helper()
	info := p.connect(t, p.server(i), p.port).Info(t.Context(), "replication").Val()
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return v
		}
	}
	return ""
}

// leader waits until all Sentinels name one leader, which leads, and the other server follows it.
func (p *pair) leader(t *testing.T) (i int) {
	t.Helper()
	p.sentinels[0].Eventually(t, "know a leader and its replica", func() bool {
		i = p.named(t)
		return i >= 0 && p.replication(t, i, "role") == "master" && p.replication(t, 1-i, "role") == "slave" &&
			p.replication(t, 1-i, "master_link_status") == "up" && p.replication(t, i, "connected_slaves") == "1"
	})
	return i
}

// named returns the leader that all Sentinels name and could replace, or -1.
func (p *pair) named(t *testing.T) (i int) {
	t.Helper()
	leader := ""
	for s := range p.sentinels {
		c := p.connect(t, p.sentinel(s), p.sentinelPort)
		named, err := c.Do(t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "cellserver").StringSlice()
		if err != nil || leader != "" && named[0] != leader {
			return -1
		}
		leader = named[0]
		if others, err := c.Do(t.Context(), "SENTINEL", "SENTINELS", "cellserver").Slice(); err != nil || len(others) != 2 {
			return -1
		}
	}
	return slices.Index([]string{p.server(0), p.server(1)}, leader)
}

// take takes a unit of eight from a server, and expects a number to be left.
func (p *pair) take(t *testing.T, server int, want int64) {
	t.Helper()
	c := p.connect(t, p.server(server), p.port)
	reply, err := c.Do(t.Context(), "CL.THROTTLE", "shared", 7, 1, 360_000).Int64Slice()
	if err != nil || reply[2] != want {
		t.Fatalf("server %d: %v (%v), want %d left", server, reply, err, want)
	}
}

func (p *pair) startServer(t *testing.T, i int) {
	t.Helper()
	p.servers[i] = p.start(t, p.runs(fmt.Sprint("cellserver-", i)), p.server(i))
}

func (p *pair) startSentinel(t *testing.T, i int) {
	t.Helper()
	p.sentinels[i] = p.start(t, p.runs(fmt.Sprint("sentinel-", i)), p.sentinel(i))
}

// check starts everything and changes the leader: as planned, which is what handOver does, and by a crash.
func (p *pair) check(t *testing.T, handOver func(leader int)) {
	t.Helper()
	p.checkVariables(t)
	for i := range p.servers {
		p.startServer(t, i)
	}
	for i := range p.sentinels {
		p.startSentinel(t, i)
	}
	first := p.leader(t)
	p.take(t, first, 7)
	p.take(t, first, 6)
	handOver(first)
	if second := p.leader(t); second == first {
		t.Fatal("the leader is the same after a planned change")
	}
	p.take(t, 1-first, 5) // of which nothing is lost

	// A Sentinel without its file asks the others.
	p.sentinels[0].Stop(t, syscall.SIGTERM)
	if err := os.Remove(filepath.Join(p.data(t, "sentinel-0"), "sentinel.conf")); err != nil {
		t.Fatal(err)
	}
	p.startSentinel(t, 0)
	if leader := p.leader(t); leader != 1-first {
		t.Fatal("a Sentinel that has lost its file does not find the leader")
	}

	c := p.connect(t, p.server(1-first), p.port).Conn()
	defer func() { _ = c.Close() }()
	if reply, err := c.Do(t.Context(), "CL.THROTTLE", "shared", 7, 1, 360_000).Int64Slice(); err != nil || reply[2] != 4 {
		t.Fatalf("%v (%v)", reply, err)
	}
	if n, err := c.Wait(t.Context(), 1, 0).Result(); n != 1 || err != nil {
		t.Fatalf("%d replicas have the change (%v)", n, err)
	}
	p.servers[1-first].Stop(t, syscall.SIGKILL)
	p.sentinels[0].Eventually(t, "replace a leader that is gone", func() bool {
		return p.named(t) == first && p.replication(t, first, "role") == "master"
	})
	p.take(t, first, 3)
	p.startServer(t, 1-first)
	if leader := p.leader(t); leader != first {
		t.Fatal("a leader that comes back leads again")
	}
	p.take(t, first, 2)
}

// failover asks a Sentinel for a planned change: again until it first sees the replica in the leader's INFO,
// and if a busy machine makes the change fail.
func (p *pair) failover(t *testing.T, leader int) {
	t.Helper()
	c := p.connect(t, p.sentinel(1), p.sentinelPort)
	p.sentinels[1].Eventually(t, "replace the leader", func() bool {
		if p.replication(t, leader, "role") == "slave" {
			return true
		}
		_ = c.Do(t.Context(), "SENTINEL", "FAILOVER", "cellserver").Err()
		return false
	})
	p.sentinels[1].Eventually(t, "end a failover", func() bool {
		values, err := c.Do(t.Context(), "SENTINEL", "MASTER", "cellserver").StringSlice()
		return err == nil && !strings.Contains(strings.Join(values, " "), "failover_in_progress")
	})
}

// checkVariables expects the servers' environment to consist of flags.
func (p *pair) checkVariables(t *testing.T) {
	t.Helper()
	help := run(t, "", p.binary, "--help")
	for name := range p.runs("cellserver-0").env {
		if strings.HasPrefix(name, "CELLSERVER_") && !isFlagVariable(help, name) {
			t.Errorf("%s is not the variable of a flag", name)
		}
	}
}
