package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"cellserver/internal/base/certs"
	"cellserver/internal/resp"
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

// dialer connects to servers, with TLS if config is not nil. Unlike go-redis's, it respects its context over
// TLS.
type dialer struct{ config *tls.Config }

func newDialer(useTLS bool, c Config) (dialer, error) {
	if !useTLS {
		if c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" || c.ServerName != "" {
			return dialer{}, errors.New("servers: certificates for the store need a URL that begins with rediss")
		}
		return dialer{}, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if c.CAFile != "" {
		var err error
		if config.RootCAs, err = certs.Authorities(c.CAFile); err != nil {
			return dialer{}, fmt.Errorf("servers: read the store's certificate authorities: %w", err)
		}
	}
	if c.CertFile != "" || c.KeyFile != "" {
		var err error
		if config.Certificates, err = certs.Pair(c.CertFile, c.KeyFile); err != nil {
			return dialer{}, fmt.Errorf("servers: read the certificate for the store: %w", err)
		}
	}
	return dialer{config}, nil
}

func (d dialer) context(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == surplusAddr {
		return nil, fmt.Errorf("the cluster names more than %d servers", maxServers)
	}
	dial := (&net.Dialer{}).DialContext
	if d.config != nil {
		dial = (&tls.Dialer{Config: d.config}).DialContext
	}
	return replyBounds().Bounded(dial)(ctx, network, addr)
}

// replyBounds are twice the largest reply to our pipelines, and allow for a cluster's map of 16,384 parts
// with three servers each.
func replyBounds() resp.ReplyBounds {
	return resp.ReplyBounds{BulkBytes: 4 << 20, Bytes: 32 << 20, Elements: 1 << 19}
}

// lane bounds the connections used for one purpose, so that many or slow calls leave some for other keys'
// pipelines.
type lane chan struct{}

// enter waits for half of the time left in ctx. A call sent too late would cost its connection.
func (l lane) enter(ctx context.Context) bool {
	select {
	case l <- struct{}{}:
		return true
	default:
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	select {
	case l <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l lane) leave() { <-l }

func (s *Server) sendIn(ctx context.Context, l lane, calls []*Call, wait int) {
	if !l.enter(ctx) {
		text := s.Addr + ": all connections for such calls are in use"
		s.fail(calls, &Failed{Reason: QueueFull, Text: text})
		return
	}
	defer l.leave()
	s.send(ctx, calls, wait)
}

// slowKeys are the keys of single calls that have timed out since the server's last answer. A key may be slow
// because its value is large or many clients use it: that must not open the circuit. If the server is down,
// calls on other keys fail, too.
type slowKeys struct {
	mu   sync.Mutex // rank 90: guards all below
	keys map[string]struct{}
}

// maxSlowKeys is more than the failures after which the circuit opens.
const maxSlowKeys = 2 * tripAfter

// known notes the key of a timeout, and reports whether it had one before, or has large values.
func (k *slowKeys) known(calls []*Call) bool {
	switch {
	case calls[0].Large:
		return true
	case len(calls) > 1 || len(calls[0].Keys) != 1:
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := calls[0].Keys[0]
	if _, is := k.keys[key]; is {
		return true
	}
	if k.keys == nil || len(k.keys) >= maxSlowKeys {
		k.keys = make(map[string]struct{}, 1)
	}
	k.keys[key] = struct{}{}
	return false
}

func (k *slowKeys) answered() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.keys)
}

// cluster maps slots to servers by go-redis's client, which sends nothing else: it would send calls again
// after a timeout.
type cluster struct {
	pool     *Pool
	client   *redis.ClusterClient
	known    atomic.Bool // slots loaded once
	loading  atomic.Bool
	err      atomic.Pointer[Failed] // of the last load
	noticeNs atomic.Int64           // time of the last reload, since start
	forgetNs atomic.Int64           // time servers were last forgotten
}

const (
	minReload = 100 * time.Millisecond // between loads of the map
	maxReload = 10 * time.Second
	// Servers that have left the cluster are forgotten.
	forgetEvery = time.Minute
	forgetAfter = 10 * time.Minute
)

func newCluster(p *Pool) *cluster {
	c := &cluster{pool: p}
	c.client = redis.NewClusterClient(&redis.ClusterOptions{Addrs: p.place.hosts, MaxRetries: -1, MaxRedirects: -1,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true, ClusterStateReloadInterval: maxReload,
		NewClient: func(o *redis.Options) *redis.Client { return p.lend(o.Addr) }})
	c.load()
	return c
}

// lend gives a server's client to the cluster's, which closes it after a minute without slots.
func (p *Pool) lend(addr string) *redis.Client {
	s := p.At(addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.lent && !p.closed.Load() { // the cluster's client has closed it
		s.client.Store(p.client(addr))
	}
	s.lent = true
	return s.Client()
}

func (c *cluster) load() {
	if !c.loading.CompareAndSwap(false, true) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), minDialTimeout+c.pool.config.Timeout)
		defer cancel()
		_, err := c.client.MasterForKey(ctx, "")
		if err == nil {
			c.known.Store(true)
			return
		}
		f := unanswered(&Server{Addr: "the cluster's slots are not known"}, err, false)
		c.err.Store(f)
		time.AfterFunc(minReload, func() { c.loading.Store(false) })
	}()
}

// of does not wait once the map is known.
func (c *cluster) of(ctx context.Context, key string) (*Server, error) {
	if !c.known.Load() {
		c.load()
		if f := c.err.Load(); f != nil {
			return nil, f
		}
		return nil, &Failed{Reason: Cluster, Text: "the cluster's slots are not known yet"}
	}
	client, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		return nil, unanswered(&Server{Addr: "the cluster"}, err, false)
	}
	return c.pool.At(client.Options().Addr), nil
}

func (c *cluster) masters(ctx context.Context) ([]*Server, error) {
	var mu sync.Mutex // rank 60: guards what the callbacks add
	var all []*Server
	err := c.client.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c.pool.At(client.Options().Addr))
		return nil
	})
	if err != nil {
		return nil, unanswered(&Server{Addr: "the cluster's slots are not known"}, err, false)
	}
	c.known.Store(true)
	return all, nil
}

// noticed reloads the map after signs of moved slots or a promoted replica.
func (p *Pool) noticed() {
	c := p.cluster
	if c == nil || !c.known.Load() {
		return
	}
	now := time.Since(p.start)
	if due(&c.noticeNs, now, minReload) {
		c.client.ReloadState(context.Background())
	}
	if due(&c.forgetNs, now, forgetEvery) {
		p.forget(now, forgetAfter)
	}
}

// due returns true once per interval.
func due(lastNs *atomic.Int64, now, every time.Duration) bool {
	last := lastNs.Load()
	return (last == 0 || int64(now)-last >= int64(every)) && lastNs.CompareAndSwap(last, int64(now))
}
