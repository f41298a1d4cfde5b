// Package remote keeps states on Redis or Valkey servers, by whose clocks it decides. It sends the requests
// of all connections to a server as pipelines with a script call for each key; a policy decides the ones not
// answered in time. A Store is safe for concurrent use.
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

const DefaultTimeout = 50 * time.Millisecond

// Pool is the part of a *servers.Pool that a Store uses.
type Pool interface {
	engine.Pool
	OneStep(keys []string) bool
	Slot(key string) uint16
	Do(ctx context.Context, key string, c *servers.Call, wait int) error
	Masters(ctx context.Context) ([]*servers.Server, error)
}

type Config struct {
	Pool      Pool
	KeyPrefix string        // of all keys on the servers
	Timeout   time.Duration // of a decision; 0 is DefaultTimeout
	Wait      int           // number of replicas that must have a write; see servers.Pool.Send

	OnError    store.Fallback
	Local      store.Store // decides by the policy Local; it must answer at once
	LocalShare float64     // Local's part of each limit, above 0 and at most 1

	Prefilter bool // denies requests without asking, by recently read TATs

	// Now is the caller's clock: monotonic Unix nanoseconds.
	Now func() int64
	// CallersTime has scripts decide at the callers' times, to the nanosecond, and keys live for an hour
	// longer: for tests with their own clock.
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

// Abilities implements store.Remote: it has none. Keys are not held on the servers, as a cellserver that is
// lost would hold them for ever.
func (s *Store) Abilities() store.Abilities { return store.Abilities{} }

// Close has the policy decide all waiting and later requests, and returns once no call is under way.
func (s *Store) Close() {
	s.deadlines.close()
	s.engine.WaitIdle()
}

func (s *Store) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

func (s *Store) name(key store.Key) string { return s.KeyPrefix + string(key.Name) }
