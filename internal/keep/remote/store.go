// Package remote is the store of states on Redis or Valkey servers, whose clocks decide: what requests of all connections wait for
// a server are sent to it as pipelines of scripts, one for each key, and what it does not answer in time is decided by a policy. A
// Store is safe for concurrent use.
package remote

import (
	"context"
	"time"

	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/prefilter"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// DefaultTimeout is how long a decision may take.
const DefaultTimeout = 50 * time.Millisecond

// Pool is what a Store needs of a *servers.Pool.
type Pool interface {
	engine.Pool
	OneStep(keys []string) bool
	Slot(key string) uint16
	Do(ctx context.Context, key string, c *servers.Call, wait int) error
	Masters(ctx context.Context) ([]*servers.Server, error)
}

// Config is what a Store is opened with.
type Config struct {
	Pool      Pool
	KeyPrefix string        // of all keys on the servers
	Timeout   time.Duration // a decision takes no longer; 0 is DefaultTimeout
	Wait      int           // how many replicas must have what was written; see servers.Pool.Send

	OnError    store.Fallback
	Local      store.Store // decides by the policy Local; it must answer at once
	LocalShare float64     // of each limit that is Local's, above 0 and at most 1

	Prefilter bool // denies requests without asking, by recently read TATs

	// Now is the caller's clock: Unix nanoseconds that do not go back.
	Now func() int64
	// CallersTime has scripts decide at the times that callers give, to the nanosecond, instead of the servers', and lets
	// keys live for an hour longer: for tests on a clock of their own.
	CallersTime bool
}

// Store implements store.Remote.
type Store struct {
	Config
	scripts   *script.Scripts
	engine    *engine.Engine
	filter    *prefilter.Filter // nil without Prefilter
	counts    counts
	deadlines deadlines
}

// Open returns a store on a pool's servers, which it does not close.
func Open(c Config) (*Store, error) {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if err := checkPolicy(c.OnError, &c); err != nil {
		return nil, err
	}
	s := &Store{Config: c, scripts: script.New(c.CallersTime)}
	s.deadlines.expire = s.expire
	if c.Prefilter && !c.CallersTime {
		s.filter = prefilter.New(c.KeyPrefix, c.Now)
	}
	s.engine = engine.New(engine.Config{
		Pool: c.Pool, Scripts: s.scripts, Filter: s.filter, Timeout: c.Timeout, Wait: c.Wait, Now: c.Now,
		CallersTime: c.CallersTime,
	})
	return s, nil
}

// Close has all that waits decided by the policy, as all that comes is from then on, and returns when nothing is under way.
func (s *Store) Close() {
	s.deadlines.close()
	s.engine.WaitIdle()
}

// timeout returns a context for what must be done within the store's timeout.
func (s *Store) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// name returns a key's name on the servers.
func (s *Store) name(key store.Key) string { return s.KeyPrefix + string(key.Name) }
