package deploytest

import (
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/processtest"
)

type ports struct {
	clients [16]*redis.Client
}

func openPorts(t *testing.T, host string) *ports {
	t.Helper()
	p := &ports{}
	for i := range p.clients {
		p.clients[i] = redis.NewClient(&redis.Options{Addr: fmt.Sprintf("%s:%d", host, 7000+i), PoolSize: 1, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { _ = p.clients[i].Close() })
	}
	return p
}

func portOf(key string) int { return int(crc32.ChecksumIEEE([]byte(key)) % 16) }

func (p *ports) of(key string) redis.UniversalClient { return p.clients[portOf(key)] }

// TestHAProxy checks that only the ports of a lost server move, and that new connections return to it, but no
// old ones.
func TestHAProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for health checks")
	}
	t.Parallel()
	haproxy := processtest.Need(t, "haproxy")
	s := startShards(t)
	host := loopbackNetwork(t) + "1"        // the ports are those of the file
	dir, err := os.MkdirTemp("", "haproxy") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	places := []string{"127.0.0.1:7000", host + ":7000", "/run/haproxy", dir}
	for i := range s.addrs {
		metrics := s.metrics[i][strings.LastIndexByte(s.metrics[i], ':')+1:]
		places = append(places, fmt.Sprintf("127.0.0.1:638%d port 938%d", i, i), s.addrs[i]+" port "+metrics)
	}
	text := strings.NewReplacer(places...).Replace(read(t, "deploy/sharding/haproxy.cfg"))
	proxy := processtest.Start(t, processtest.Command(t, haproxy, "-db", "-f", write(t, dir, "haproxy.cfg", text)))
	t.Cleanup(func() { proxy.Stop(t, syscall.SIGTERM) }) // the signal ends it without an exit code

	p := openPorts(t, host)
	proxy.Eventually(t, "listen", func() bool { return p.clients[0].Ping(t.Context()).Err() == nil })
	homes, each := s.spendAll(t, p.of), [3]map[int]bool{{}, {}, {}}
	for key, home := range homes {
		each[home][portOf(key)] = true
	}
	if len(each[0]) < 3 || len(each[1]) < 3 || len(each[2]) < 3 || len(each[0])+len(each[1])+len(each[2]) > 16 {
		t.Fatalf("the servers have the ports %v", each)
	}

	const lost = 1
	s.kill(t, lost)
	proxy.Eventually(t, "notice a lost server", func() bool {
		_, failed := spend(t, p.of)
		return len(failed) == 0
	})
	for key, home := range homes {
		if now := s.home(t, key); now < 0 || home != lost && now != home {
			t.Errorf("%s of server %d is now at %d", key, home, now)
		}
	}

	s.start(t, lost)
	fresh := openPorts(t, host)
	var moved string
	for key, home := range homes {
		if home == lost {
			moved = key
		}
	}
	proxy.Eventually(t, "notice that the server is back", func() bool {
		c := redis.NewClient(&redis.Options{Addr: fresh.clients[portOf(moved)].Options().Addr})
		defer func() { _ = c.Close() }()
		return c.Do(t.Context(), "CL.THROTTLE", moved, 0, 1, 3600).Err() == nil && s.clients[lost].Exists(t.Context(), moved).Val() == 1
	})
	if err := s.clients[lost].Del(t.Context(), moved).Err(); err != nil {
		t.Fatal(err)
	}
	for _, connections := range []struct {
		ports *ports
		back  int64
	}{{p, 0}, {fresh, 1}} {
		if err := connections.ports.clients[portOf(moved)].Do(t.Context(), "CL.THROTTLE", moved, 0, 1, 3600).Err(); err != nil {
			t.Error(err)
		}
		if n := s.clients[lost].Exists(t.Context(), moved).Val(); n != connections.back {
			t.Errorf("after a call on a connection that is new: %v, the server that is back has %d of its keys", connections.back == 1, n)
		}
	}
}
