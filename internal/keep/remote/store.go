// Package remote is the store of states on Redis or Valkey servers, whose clocks decide: what requests of all connections wait for
// a server are sent to it as pipelines of scripts, one for each key, and what it does not answer in time is decided by a policy. A
// Store is safe for concurrent use.
package remote

import (
	"context"
	"sync"
	"time"

	"cellserver/internal/keep/remote/ahead"
	"cellserver/internal/keep/remote/recent"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// DefaultTimeout is how long a decision may take.
const DefaultTimeout = 50 * time.Millisecond

// Pool is what a Store needs of a *servers.Pool.
type Pool interface {
	Clustered() bool
	OneStep(keys []string) bool
	Slot(key string) uint16
	Of(ctx context.Context, key string) (*servers.Server, error)
	At(addr string) *servers.Server
	Forgotten(s *servers.Server) bool
	Send(ctx context.Context, s *servers.Server, calls []*servers.Call, wait int)
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

	// Prefilter has requests denied, unasked, that a TAT which was read lately denies already.
	Prefilter bool
	// Lease is how units of hot funnels are taken ahead.
	Lease ahead.Config

	// Now is the caller's clock: Unix nanoseconds that do not go back.
	Now func() int64
	// CallersTime has scripts decide at the times that callers give, to the nanosecond, instead of the servers', and lets
	// keys live for an hour longer: for tests on a clock of their own.
	CallersTime bool
}

// What waits is bounded: beyond this, requests are decided by the policy at once.
const (
	maxWaiting      = 1 << 17
	maxWaitingBytes = 64 << 20 // of names
	// serverPart is that those for one server of a cluster may be one of so many parts of them, or one that hangs would have
	// requests refused that are none of its.
	serverPart = 2
)

// Store implements store.Remote.
type Store struct {
	Config
	scripts    scripts
	keyScripts keyScripts
	counts     counts
	deadlines  deadlines
	groups     table
	others     others
	recent     *recent.Table // nil without Prefilter
	leases     *ahead.Table  // nil without leases
	stop       chan struct{} // closed by Close
	closing    sync.Once
	working    working
	waiting    waiting

	mu    sync.RWMutex // guards all below
	nodes map[*servers.Server]*node
}

// Open returns a store on a pool's servers, which it does not close.
func Open(c Config) (*Store, error) {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if err := checkPolicy(c.OnError, &c); err != nil {
		return nil, err
	}
	s := &Store{Config: c, nodes: map[*servers.Server]*node{}, scripts: newScripts(c.CallersTime), keyScripts: newKeyScripts(c.CallersTime), stop: make(chan struct{})}
	s.deadlines.expire = s.expire
	s.working.idle.L = &s.working.mu
	s.groups.init()
	s.others.init(s)
	if c.Prefilter && !c.CallersTime {
		s.recent = recent.New(recentBytes)
	}
	if c.Lease.Enabled && !c.CallersTime {
		s.leases = ahead.New(c.Lease)
		s.working.begin()
		go s.giveBackNowAndThen()
	}
	return s, nil
}

// Close has all that waits decided by the policy, as all that comes is from then on, and returns when nothing is under way.
func (s *Store) Close() {
	s.closing.Do(func() { close(s.stop) })
	s.deadlines.close()
	s.working.wait()
}

// working counts goroutines, and what will be one.
type working struct {
	mu   sync.Mutex // guards all below
	n    int
	idle sync.Cond
}

func (w *working) begin() {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
}

func (w *working) end() {
	w.mu.Lock()
	if w.n--; w.n == 0 {
		w.idle.Broadcast()
	}
	w.mu.Unlock()
}

func (w *working) wait() {
	w.mu.Lock()
	for w.n > 0 {
		w.idle.Wait()
	}
	w.mu.Unlock()
}

// timeout returns a context for what must be done within the store's timeout.
func (s *Store) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// name returns a key's name on the servers.
func (s *Store) name(key store.Key) string { return s.KeyPrefix + string(key.Name) }
