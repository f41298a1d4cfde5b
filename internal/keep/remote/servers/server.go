package servers

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// Server decides about keys. An address has one *Server until it is forgotten.
type Server struct {
	Addr string // host:port, or the master's name where sentinels know the address

	pool    *Pool
	client  atomic.Pointer[redis.Client]
	lent    bool // shared with the cluster's client, which closes it; guarded by Pool.mu
	single  lane // of Do
	large   lane // of calls that are Large
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	slow    slowKeys
	counts  counts
	lastErr atomic.Pointer[string] // the breaker's
	usedNs  atomic.Int64           // time of last use, since start
}

// After tripAfter failures in a row, a server is tried once every openFor.
const (
	tripAfter = 5
	openFor   = 500 * time.Millisecond
)

func (p *Pool) newServer(addr string) *Server {
	n := p.config.PoolSize
	s := &Server{Addr: addr, pool: p, single: make(lane, max(n/2, 1)), large: make(lane, max(n/8, 1))}
	s.usedNs.Store(int64(time.Since(p.start)))
	s.client.Store(p.client(addr))
	s.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: addr, MaxRequests: 1, Timeout: openFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		OnStateChange: s.changed,
		IsExcluded:    func(err error) bool { return errors.Is(err, errNeutral) },
	})
	return s
}

// Client returns a client for commands without keys, such as DBSIZE and SCAN.
func (s *Server) Client() *redis.Client { return s.client.Load() }

// changed logs that a server fails or answers again, not each try between.
func (s *Server) changed(_ string, from, to gobreaker.State) {
	switch {
	case from == gobreaker.StateClosed && to == gobreaker.StateOpen:
		s.pool.config.Log.Warn("the store's server does not answer", "server", s.Addr, "error", s.reasonOpen())
	case to == gobreaker.StateClosed:
		s.pool.config.Log.Info("the store's server answers again", "server", s.Addr)
	}
}

func (s *Server) reasonOpen() string {
	if text := s.lastErr.Load(); text != nil {
		return *text
	}
	return ""
}

// Forgotten reports whether a server left its cluster so long ago that At returns another one.
func (p *Pool) Forgotten(s *Server) bool { return p.servers()[s.Addr] != s }

// reopen replaces a client closed by the cluster's client because the server had no slots for a while.
func (s *Server) reopen(closed *redis.Client) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers()[s.Addr] == s && !p.closed.Load() && s.client.Load() == closed {
		s.client.Store(p.client(s.Addr))
		s.lent = false
	}
}

// forget drops servers that have left the cluster: with changing addresses they would pile up.
func (p *Pool) forget(now, unusedFor time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := make(map[string]*Server, len(p.servers()))
	for addr, s := range p.servers() {
		if now-time.Duration(s.usedNs.Load()) < unusedFor || s.lent && !isClosed(s.Client()) {
			left[addr] = s
		} else {
			_ = s.Client().Close()
		}
	}
	p.byAddr.Store(&left)
}

func isClosed(client *redis.Client) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return errors.Is(client.Ping(ctx).Err(), redis.ErrClosed)
}
