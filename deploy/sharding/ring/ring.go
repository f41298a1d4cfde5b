// Package ring is an example of independent cellservers behind one client of a Go program. docs/TUNING.md,
// "Sharding without shared state", explains what a lost server forgives.
package ring

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Open returns a client that sends each key to one of the servers. Their names decide, not their addresses,
// so a server may move, and all programs must use the same names. A server that has not answered PING for
// three heartbeats is lost, and its keys move to the others until it answers again; with stay, calls for them
// fail instead. timeout bounds the wait for a connection and for an answer; 100 ms is plenty.
func Open(servers map[string]string, password string, timeout time.Duration, stay bool) *redis.Ring {
	options := &redis.RingOptions{
		Addrs:              servers,
		Password:           password,
		HeartbeatFrequency: 500 * time.Millisecond,
		MaxRetries:         -1, // a retried call may be counted twice
		DialerRetries:      1,
		DialTimeout:        timeout,
		ReadTimeout:        timeout,
		WriteTimeout:       timeout,
	}
	if stay {
		options.HeartbeatFn = func(context.Context, *redis.Client) bool { return true }
	}
	return redis.NewRing(options)
}
