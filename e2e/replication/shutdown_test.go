package replication

import (
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// askLikeAReplica sends a command by a replica's connection.
func askLikeAReplica(t *testing.T, c *redis.Conn, args ...any) any {
	t.Helper()
	reply, err := c.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// TestShutdownDuringAChange: a planned change that fails while the leader shuts down does not have it accept
// changes again, which its replicas would lack.
func TestShutdownDuringAChange(t *testing.T) {
	t.Parallel()
	leader := start(t, "--shutdown-timeout", "1h")
	_, port, err := net.SplitHostPort(processtest.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	second := harness.Database(t, leader.Process, 0)
	follows, asks, client := leader.rdb.Conn(), second.Conn(), leader.rdb.Conn()
	for _, c := range []*redis.Conn{follows, asks} {
		askLikeAReplica(t, c, "REPLCONF", "listening-port", port, "ip-address", "127.0.0.1")
	}
	begun := askLikeAReplica(t, follows, "CL.SYNC", "START", 5, strings.Repeat("0", 40), 0).([]any)
	history, offset := begun[2], begun[5]
	leader.Eventually(t, "have it in step", func() bool {
		askLikeAReplica(t, follows, "CL.SYNC", "NEXT", -1)
		return follows.Do(t.Context(), "CL.SYNC", "NEXT", offset).Err() == nil &&
			strings.Contains(leader.field(t, "slave0"), "state=online")
	})
	leader.charge(t, "a", 1) // which the replica does not acknowledge, so that the shutdown waits
	askLikeAReplica(t, asks, "CL.SYNC", "PING", strconv.Itoa(1_000_000))
	askLikeAReplica(t, asks, "CL.SYNC", "HANDOVER", history, offset, 60_000)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := leader.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	leader.Eventually(t, "shut down", func() bool { return strings.Contains(leader.Log.String(), "shutting down") })
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	leader.Eventually(t, "refuse changes", func() bool {
		err := client.Do(t.Context(), "CL.THROTTLE", "b", 9, 1, 60).Err()
		return err != nil && strings.HasPrefix(err.Error(), "READONLY the server is shutting down") || leader.HasExited()
	})
	if leader.HasExited() {
		t.Error("it has ended before")
	}
	leader.crash(t) // which waits for the replica
}
