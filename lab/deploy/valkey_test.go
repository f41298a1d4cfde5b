package deploytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
	"cellserver/internal/test/randtest"
)

// fleet runs the nodes of a cluster as a manifest says, each at a loopback address of its own, with Redis's
// programs under Valkey's names.
type fleet struct {
	dir, network, port string
	env                []string
	places             *strings.Replacer // paths and addresses of containers, with their replacements
	nodes              []*processtest.Process
}

const fleetPassword = "0123456789abcdef"

// loopbackNetwork returns the beginning of loopback addresses that hardly another test takes.
func loopbackNetwork(t *testing.T) string {
	t.Helper()
	random := randtest.New(t)
	return fmt.Sprintf("127.%d.%d.", 1+random.IntN(250), random.IntN(250))
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	processtest.Need(t, "redis-server")
	processtest.Need(t, "redis-cli")
	_, port, _ := strings.Cut(processtest.FreeAddr(t), ":")
	f := &fleet{dir: t.TempDir(), network: loopbackNetwork(t), port: port}
	bin := filepath.Join(f.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"valkey-server": `exec redis-server "$@"`,
		"valkey-cli":    `exec redis-cli -h "${POD_IP:-127.0.0.1}" -p ` + port + ` "$@"`, // a later -h wins
		"sleep":         `exec /bin/sleep 0.1`,
		"getent":        `grep -F " $2" ` + filepath.Join(f.dir, "hosts"),
	} {
		path := write(t, bin, name, "#!/bin/sh\n"+script+"\n")
		if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	f.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	return f
}

func (f *fleet) address(i int) string { return f.network + strconv.Itoa(i) }

// command returns a command line as in the container of node i, or of no node.
func (f *fleet) command(t *testing.T, i int, args ...string) *exec.Cmd {
	t.Helper()
	for j := range args {
		args[j] = f.places.Replace(args[j])
	}
	cmd := processtest.Command(t, args[0], args[1:]...)
	cmd.Env = append(slices.Clone(f.env), "POD_IP="+f.address(i))
	return cmd
}

// config writes the settings of a node, which listens only at its own address, and returns their path.
func (f *fleet) config(t *testing.T, i int, text string) string {
	t.Helper()
	data := filepath.Join(f.dir, "data"+strconv.Itoa(i%10))
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return write(t, data, "valkey.conf", strings.ReplaceAll(text, "dir /data", "dir "+data)+"\nbind "+f.address(i)+"\nbind-source-addr "+f.address(i)+"\nport "+f.port+"\n")
}

// start starts a node.
func (f *fleet) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	p := processtest.Start(t, cmd)
	t.Cleanup(func() { endNode(t, p) })
	f.nodes = append(f.nodes, p)
}

func (f *fleet) stop(t *testing.T) {
	t.Helper()
	for _, p := range f.nodes {
		if code := endNode(t, p); code != 0 {
			t.Errorf("a node ended with %d", code)
		}
	}
	f.nodes = nil
}

// endNode repeats SIGTERM until a node ends: one that writes its first log ignores it.
func endNode(t *testing.T, p *processtest.Process) (code int) {
	t.Helper()
	p.Eventually(t, "end", func() bool {
		_ = p.Cmd.Process.Signal(syscall.SIGTERM)
		return p.HasExited()
	})
	return p.Await(t)
}

func (f *fleet) client(t *testing.T, i int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: f.address(i) + ":" + f.port, Password: fleetPassword, DisableIdentity: true, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// checkCluster waits until a node sees three masters with all slots, and a replica of each.
func (f *fleet) checkCluster(t *testing.T, i int) {
	t.Helper()
	c, got := f.client(t, i), ""
	f.nodes[0].Eventually(t, "be in a cluster", func() bool {
		got = c.ClusterInfo(t.Context()).Val() + c.ClusterNodes(t.Context()).Val()
		masters, replicas := 0, 0
		for line := range strings.Lines(got) {
			if strings.Contains(line, "master") && strings.Contains(line, " connected ") {
				masters++
			}
			if strings.Contains(line, "slave") && strings.Contains(line, " connected") {
				replicas++
			}
		}
		return strings.Contains(got, "cluster_state:ok") && strings.Contains(got, "cluster_slots_assigned:16384") && masters == 3 && replicas == 3
	})
}

// checkSettings expects the settings that limits require.
func (f *fleet) checkSettings(t *testing.T, i int) {
	t.Helper()
	c := f.client(t, i)
	for name, want := range map[string]string{
		"cluster-enabled": "yes", "appendonly": "yes", "maxmemory": "536870912", "maxmemory-policy": "noeviction",
		"requirepass": fleetPassword, "masterauth": fleetPassword, "cluster-require-full-coverage": "no",
	} {
		if got := c.ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func (f *fleet) clusterClient(t *testing.T, nodes ...int) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for _, i := range nodes {
		addrs = append(addrs, f.address(i)+":"+f.port)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Password: fleetPassword})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
