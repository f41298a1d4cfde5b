package cellserver

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultTimeout bounds a call. A limiter that takes longer harms more than it helps.
const DefaultTimeout = 50 * time.Millisecond

// Options returns options for redis.NewClient that suit a limiter: each step ends after DefaultTimeout,
// and nothing is tried twice, as a call without an answer may have been counted. Set Username, Password,
// TLSConfig and the like as you need.
func Options(addr string) *redis.Options {
	return &redis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: DefaultTimeout,
		ReadTimeout: DefaultTimeout, WriteTimeout: DefaultTimeout, PoolTimeout: DefaultTimeout,
	}
}

// FailoverOptions returns such options for redis.NewFailoverClient, which asks Sentinels who leads.
func FailoverOptions(master string, sentinels ...string) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: master, SentinelAddrs: sentinels,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1, DialTimeout: DefaultTimeout,
		ReadTimeout: DefaultTimeout, WriteTimeout: DefaultTimeout, PoolTimeout: DefaultTimeout,
	}
}
