// Package ring is an example: several cellservers that know nothing of each other, as one for a Go program. docs/SCALING.md,
// "Sharding without shared state", says what a lost server forgives.
package ring

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Open returns a client that sends each key to one of the servers. Their names, not their addresses, decide which has a key, so
// a server may move, and all programs must use the same names. A server that did not answer PING for three heartbeats is lost:
// then its keys are the others', until it answers again. With stay they are not: calls for them fail meanwhile. A call waits no
// longer than the timeout for a connection, nor for its answer; 100 ms are much.
func Open(servers map[string]string, password string, timeout time.Duration, stay bool) *redis.Ring {
	options := &redis.RingOptions{
		Addrs:              servers,
		Password:           password,
		HeartbeatFrequency: 500 * time.Millisecond,
		MaxRetries:         -1, // a call that is sent again may be counted twice
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
