package main

import (
	"strings"
	"syscall"
	"testing"
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
				args = []string{"--store", "redis://" + startRedis(t).addr, "--store-timeout", "30s"}
			}
			p := startServer(t, args...)
			nc := p.dial(t)
			sayTo(t, nc, "CL.RESERVE k 9 1 1000000 2 100\r\nPING\r\n", "+PONG\r\n")
			p.Eventually(t, "forget the reservation", func() bool {
				return strings.HasSuffix(sayTo(t, nc, "EXISTS k\r\nKEYS *\r\nPING\r\n", "+PONG\r\n"),
					":0\r\n*0\r\n+PONG\r\n")
			})
			exchange(t, nc, "PTTL k\r\nTYPE k\r\nGET k\r\nDUMP k\r\nOBJECT ENCODING k\r\nDEL k\r\nCL.PEEK k 9 1 1000000\r\n",
				":-2\r\n+none\r\n$-1\r\n$-1\r\n$-1\r\n:0\r\n*5\r\n:0\r\n:10\r\n:10\r\n:-1\r\n:0\r\n")
			if where == "store" {
				return
			}
			syncAll(t, p)
			p.Stop(t, syscall.SIGKILL)
			exchange(t, startKeeping(t, dir).dial(t), "DBSIZE\r\nEXISTS k\r\n", ":0\r\n:0\r\n")
		})
	}
}
