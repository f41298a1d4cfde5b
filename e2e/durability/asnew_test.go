package durability

import (
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// TestExpiredReservationIsNoKey: what a reservation has debited for days, had it been used, leaves nothing
// behind when it expires, in memory, on the disk and on a Redis.
func TestExpiredReservationIsNoKey(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"memory", "store"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{"--data-dir", dir}
			if where == "store" {
				args = []string{"--store", "redis://" + harness.StartRedis(t).Addr, "--store-timeout", "30s"}
			}
			p := harness.StartServer(t, args...)
			nc := p.Dial(t)
			harness.SayTo(t, nc, "CL.RESERVE k 9 1 1000000 2 100\r\nPING\r\n", "+PONG\r\n")
			p.Eventually(t, "forget the reservation", func() bool {
				return strings.HasSuffix(harness.SayTo(t, nc, "EXISTS k\r\nKEYS *\r\nPING\r\n", "+PONG\r\n"),
					":0\r\n*0\r\n+PONG\r\n")
			})
			harness.Exchange(t, nc, "PTTL k\r\nTYPE k\r\nGET k\r\nDUMP k\r\nOBJECT ENCODING k\r\nDEL k\r\nCL.PEEK k 9 1 1000000\r\n",
				":-2\r\n+none\r\n$-1\r\n$-1\r\n$-1\r\n:0\r\n*5\r\n:0\r\n:10\r\n:10\r\n:-1\r\n:0\r\n")
			if where == "store" {
				return
			}
			harness.SyncAll(t, p)
			p.Stop(t, syscall.SIGKILL)
			harness.Exchange(t, harness.StartKeeping(t, dir).Dial(t), "DBSIZE\r\nEXISTS k\r\n", ":0\r\n:0\r\n")
		})
	}
}
