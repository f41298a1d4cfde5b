// Package sentinel has real Redis Sentinels watch the program.
package sentinel

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

const (
	group = "limits" // the name of the watched group
	hello = "__sentinel__:hello"
)

// startSentinel runs a redis-server --sentinel that watches a server. It takes two of them, and three seconds
// of silence, to call the server down. Of further lines of its file the name of the group is left out.
func startSentinel(t *testing.T, master *harness.Process, lines ...string) *harness.Process {
	t.Helper()
	path := processtest.Need(t, "redis-server")
	for range 5 { // another process may take the free port first
		addr := processtest.FreeAddr(t)
		_, port, _ := net.SplitHostPort(addr)
		file := "port " + port + "\nbind 127.0.0.1\ndir " + t.TempDir() + "\n" +
			"sentinel monitor " + group + " 127.0.0.1 " + master.Port() + " 2\n" +
			"sentinel down-after-milliseconds " + group + " 3000\n"
		for _, line := range lines {
			word, rest, _ := strings.Cut(line, " ")
			file += "sentinel " + word + " " + group + " " + rest + "\n"
		}
		p := harness.Start(t, processtest.Command(t, path, harness.WriteFile(t, file), "--sentinel"))
		p.Addr = addr
		p.Eventually(t, "watch", func() bool { return strings.Contains(p.Log.String(), "+monitor master "+group) || p.HasExited() })
		if !p.HasExited() {
			return p
		}
		p.Await(t)
		t.Logf("the sentinel did not start:\n%s", p.Log.String())
	}
	t.Fatal("redis-server --sentinel does not start")
	return nil
}

// ask returns a client of a sentinel.
func ask(t *testing.T, sentinel *harness.Process) *redis.SentinelClient {
	t.Helper()
	client := redis.NewSentinelClient(&redis.Options{
		Addr: sentinel.Addr, Protocol: 2, DisableIdentity: true, DialTimeout: patience.Forever, ReadTimeout: patience.Forever,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// readHellos reads messages until each of the sentinels has sent n.
func readHellos(t *testing.T, listener net.Conn, n int, master *harness.Process, sentinels ...*harness.Process) {
	t.Helper()
	sent := map[string]int{}
	lines := bufio.NewScanner(listener)
	all := func() bool {
		return !slices.ContainsFunc(sentinels, func(p *harness.Process) bool { return sent[p.Addr] < n })
	}
	for !all() && lines.Scan() {
		f := strings.Split(lines.Text(), ",") // the sentinel's address, ID and epoch, the group, its address and epoch
		if len(f) != 8 {
			continue
		}
		sent[net.JoinHostPort(f[0], f[1])]++
		if got := net.JoinHostPort(f[5], f[6]); f[4] != group || got != master.Addr {
			t.Errorf("a sentinel says that %s is at %s", f[4], got)
		}
	}
	if !all() {
		t.Fatalf("after %v: %v", sent, lines.Err())
	}
}

// TestSentinelsWatch: two Sentinels find one another by the server's channel, and see it as a master that is
// up, whether they log in or not.
func TestSentinelsWatch(t *testing.T) {
	const rules = "user default on >secret ~* &* +@all\n" +
		"user watch on >pw resetkeys &__sentinel__:hello -@all +multi +slaveof +ping +exec +subscribe +config|rewrite +role " +
		"+publish +info +client|setname +client|kill +script|kill\n"
	for _, tt := range []struct {
		name       string
		args, auth []string
		login      string
	}{
		{"without a password", nil, nil, ""},
		{"by password", []string{"--requirepass", "secret"}, []string{"auth-pass secret"}, "AUTH secret"},
		{"as a user with few rights", []string{"--aclfile", rules}, []string{"auth-user watch", "auth-pass pw"}, "AUTH default secret"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if len(tt.args) > 0 && tt.args[0] == "--aclfile" {
				tt.args[1] = harness.WriteFile(t, tt.args[1])
			}
			master := harness.StartServer(t, tt.args...)
			dial := func() net.Conn {
				nc := master.Dial(t)
				if tt.login != "" {
					harness.Exchange(t, nc, tt.login+"\r\n", "+OK\r\n")
				}
				return nc
			}
			listener := dial()
			harness.SayTo(t, listener, "SUBSCRIBE "+hello+"\r\n", ":1\r\n")
			a, b := startSentinel(t, master, tt.auth...), startSentinel(t, master, tt.auth...)
			for _, p := range []*harness.Process{a, b} {
				sentinel := ask(t, p)
				p.Eventually(t, "know the other and the master", func() bool {
					known, err := sentinel.Master(t.Context(), group).Result()
					return err == nil && known["num-other-sentinels"] == "1" && known["flags"] == "master" && known["role-reported"] == "master" && known["runid"] != ""
				})
			}
			// The third hello comes four seconds after the first, beyond down-after-milliseconds.
			readHellos(t, listener, 3, master, a, b)
			for _, p := range []*harness.Process{a, b} {
				sentinel := ask(t, p)
				p.Eventually(t, "see the master up", func() bool {
					known, err := sentinel.Master(t.Context(), group).Result()
					return err == nil && known["num-other-sentinels"] == "1" && known["flags"] == "master"
				})
			}
			nc := dial()
			for kind, suffix := range map[string]string{"pubsub": "-pubsub ", "normal": "-cmd "} {
				list := harness.Reply(t, nc, "CLIENT LIST TYPE "+kind)
				if strings.Count(list, " name=sentinel-") != 2 || strings.Count(list, suffix) != 2 {
					t.Errorf("%s clients are %s", kind, list)
				}
			}
		})
	}
}
