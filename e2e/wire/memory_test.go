package wire

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

const floodLimit = 6 << 20

// flooding lists ways to make the server hold about a megabyte for a client.
func flooding() map[string]string {
	long := strings.Repeat("x", 900_000)
	watch := []string{"WATCH"}
	for i := range 2000 {
		watch = append(watch, fmt.Sprintf("%0500d", i))
	}
	return map[string]string{
		"half-sent commands": "*1\r\n$1000000\r\n" + long,
		"unread replies":     strings.Repeat("COMMAND DOCS\r\n", 200),
		"queued commands":    "MULTI\r\n" + resptest.Encode("PING", long),
		"watched keys":       resptest.Encode(watch...),
		"scripts that wait":  resptest.Encode("EVAL", "while true do end", "0", long),
	}
}

// TestClientsAreBoundedTogether: when clients within their own bounds exceed the common one, the largest are
// closed first; exempt and small clients stay.
func TestClientsAreBoundedTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		racetest.OneAtATime(t)
		p := startServer(t, "--maxmemory-clients", fmt.Sprint(floodLimit), "--lua-time-limit", "1s", "--input-timeout", "0")
		modest, exempt := p.Dial(t), p.Dial(t)
		harness.Exchange(t, modest, "PING\r\n", "+PONG\r\n")
		long := strings.Repeat("y", 3_000_000)
		harness.Exchange(t, exempt, "CLIENT NO-EVICT ON\r\n", "+OK\r\n")
		harness.Send(t, exempt, "*2\r\n$4\r\nPING\r\n$3000000\r\n"+long[1:])
		for name, flood := range flooding() {
			evicted := p.Metric(t, "cellserver_connections_closed_total{reason=\"memory\"}")
			var all []net.Conn
			for range 12 {
				nc := p.Dial(t)
				all = append(all, nc)
				go func() { _, _ = io.WriteString(nc, flood) }()
			}
			p.Eventually(t, "close clients for "+name, func() bool {
				return p.Metric(t, "cellserver_connections_closed_total{reason=\"memory\"}") > evicted &&
					p.Metric(t, "cellserver_client_memory_bytes") <= floodLimit
			})
			harness.Exchange(t, modest, "PING\r\n", "+PONG\r\n")
			for _, nc := range all {
				_ = nc.Close()
			}
			p.Eventually(t, "forget what was held for "+name, func() bool {
				return p.Metric(t, "cellserver_connections") == 2 && p.Metric(t, "cellserver_client_memory_bytes") < floodLimit-1<<20
			})
		}
		harness.Exchange(t, exempt, "y\r\n", "$3000000\r\n"+long+"\r\n")
		harness.Exchange(t, modest, "CONFIG GET maxmemory-clients\r\n", "*2\r\n$17\r\nmaxmemory-clients\r\n$7\r\n6291456\r\n")
	})
}

func TestClientLimitsAreSettable(t *testing.T) {
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--max-new-keys-per-second", "2")
		nc := p.Dial(t)
		const first, newKeys = "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n", "-ERR more than 2 new keys per second from this address"
		harness.Exchange(t, nc, "CL.THROTTLE a 1 1 60\r\nCL.THROTTLE b 1 1 60\r\nCL.THROTTLE c 1 1 60\r\n", first+first+newKeys)
		nc = p.Dial(t)
		harness.Exchange(t, nc, "CONFIG SET max-new-keys-per-second 0 maxclients-per-address 3 input-timeout 1 maxmemory-clients 25%\r\n", "+OK\r\n")
		harness.Exchange(t, nc, "CL.THROTTLE c 1 1 60\r\nCL.THROTTLE d 1 1 60\r\n", first+first)
		harness.Exchange(t, nc, "CONFIG GET maxmemory-clients\r\nCONFIG GET maxclients-per-address\r\n",
			"*2\r\n$17\r\nmaxmemory-clients\r\n$3\r\n25%\r\n*2\r\n$22\r\nmaxclients-per-address\r\n$1\r\n3\r\n")
		third := p.Dial(t)
		harness.Exchange(t, third, "PING\r\n", "+PONG\r\n")
		refused := wireCase{want: "-ERR max number of clients per address reached\r\n", closed: true}
		if p.TLS != nil {
			refused.want = ""
		}
		refused.run(t, p)
		harness.Send(t, third, "*1\r\n$100000\r\n"+strings.Repeat("x", 20_000))
		if got, _ := io.ReadAll(third); len(got) != 0 {
			t.Errorf("a command that is half-sent got %q", got)
		}
		for setting, want := range map[string]string{
			"maxmemory-clients lots":     "argument must be a memory or percent value, such as 64mb or 25%",
			"max-new-keys-per-second -1": "argument must be between 0 and 1000000000 inclusive",
			"maxclients-per-address x":   "argument couldn't be parsed into an integer",
			"input-timeout -1":           "argument must be between 0 and 2147483647 inclusive",
		} {
			name, _, _ := strings.Cut(setting, " ")
			harness.Exchange(t, nc, "CONFIG SET "+setting+"\r\n", "-ERR CONFIG SET failed (possibly related to argument '"+name+"') - "+want+"\r\n")
		}
	})
}
