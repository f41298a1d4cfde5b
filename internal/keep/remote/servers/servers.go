// Package servers sends scripts to the Redis or Valkey servers of a remote store: one, the master named by
// sentinels, or the masters of a cluster. It distinguishes calls that were certainly not executed, which may
// be sent again, from those that may have been, which must not. All is safe for concurrent use.
package servers

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"cellserver/internal/store"
)

type Config struct {
	// URL is redis://[user:password@]host[:port][/db],
	// redis-cluster://[user:password@]host[:port],host[:port]... or
	// redis-sentinel://[user:password@]host[:port],.../master[/db]; with rediss, rediss-cluster and
	// rediss-sentinel over TLS. The user and password are those of the servers, and percent-encoded.
	URL      string
	Password string // of the servers, not encoded, if the URL has none
	// SentinelUser and SentinelPassword are for sentinels with a password.
	SentinelUser, SentinelPassword string

	CAFile            string // PEM; default the system's authorities
	CertFile, KeyFile string // our certificate, for servers that require one
	ServerName        string // in the servers' certificates; default the host

	Timeout  time.Duration // of a context without a deadline; default 50 ms
	PoolSize int           // connections to a server; default 16
	Log      *slog.Logger  // may be nil
}

const (
	// maxServers is more than a cluster has: a hostile server could name any number.
	maxServers = 4096
	// surplusAddr is the address of no server.
	surplusAddr = "the cluster:0"
)

const (
	defaultTimeout  = 50 * time.Millisecond
	defaultPoolSize = 16
	// Connecting, or loading the map of a cluster's slots, may take longer than a decision.
	minIOTimeout   = 250 * time.Millisecond
	minDialTimeout = time.Second
)

type Pool struct {
	place  place
	config Config
	dial   dialer
	crc    [256]uint16
	start  time.Time
	closed atomic.Bool

	password atomic.Pointer[string] // for new connections

	one     *Server // unless it is a cluster
	cluster *cluster

	byAddr atomic.Pointer[map[string]*Server] // copied on write: each request reads it
	mu     sync.Mutex                         // rank 85: for replacing it, or a server's client

	surplus *Server // for all beyond maxServers; guarded by mu
}

// Check returns the error that Open would, without opening anything.
func Check(config Config) error {
	_, _, err := config.read()
	return err
}

func (c *Config) read() (at place, dial dialer, err error) {
	if at, err = parse(c.URL, c.Password); err == nil {
		dial, err = newDialer(at.tls, *c)
	}
	return at, dial, err
}

// Open returns the servers of a URL without connecting. err is about the URL or a file.
func Open(config Config) (*Pool, error) {
	at, dial, err := config.read()
	if err != nil {
		return nil, err
	}
	config.URL, config.Password = "", "" // at has both
	if config.Timeout <= 0 {
		config.Timeout = defaultTimeout
	}
	if config.PoolSize <= 0 {
		config.PoolSize = defaultPoolSize
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{place: at, config: config, dial: dial, crc: crcTable(), start: time.Now()}
	p.byAddr.Store(&map[string]*Server{})
	p.SetPassword(at.password)
	logging.Disable() // go-redis writes a line to stderr for each connection that fails; ours say it once
	switch at.kind {
	case oneServer:
		p.one = p.At(at.hosts[0])
	case sentinels:
		p.one = p.At("sentinel:" + at.master)
	case clusterOf:
		p.cluster = newCluster(p)
	}
	return p, nil
}

// SetPassword sets the password of new connections, and reports whether it differs. Open connections stay.
func (p *Pool) SetPassword(password string) (changed bool) {
	before := p.password.Swap(&password)
	return before == nil || *before != password
}

func (p *Pool) credentials() (user, password string) { return p.place.user, *p.password.Load() }

// String returns the URL without user and password.
func (p *Pool) String() string { return p.place.String() }

func (p *Pool) Clustered() bool { return p.cluster != nil }

// OneStep reports whether one script may have all the keys.
func (p *Pool) OneStep(keys []string) bool {
	if p.cluster == nil {
		return true
	}
	for i := 1; i < len(keys); i++ {
		if p.Slot(keys[i]) != p.Slot(keys[0]) {
			return false
		}
	}
	return true
}

// Of returns a key's server without waiting. While the slots of a cluster are unknown, it loads them in the
// background and returns a *Failed.
func (p *Pool) Of(ctx context.Context, key string) (*Server, error) {
	if p.cluster == nil {
		return p.one, nil
	}
	return p.cluster.of(ctx, key)
}

func (p *Pool) servers() map[string]*Server { return *p.byAddr.Load() }

// At returns the server at an address of a redirection or cluster.
func (p *Pool) At(addr string) *Server {
	if s := p.servers()[addr]; s != nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.servers()[addr]; s != nil {
		return s
	}
	if len(p.servers()) >= maxServers {
		if p.surplus == nil {
			p.surplus = p.newServer(surplusAddr)
		}
		return p.surplus
	}
	s := p.newServer(addr)
	all := maps.Clone(p.servers())
	all[addr] = s
	p.byAddr.Store(&all)
	return s
}

func (p *Pool) Masters(ctx context.Context) ([]*Server, error) {
	if p.cluster == nil {
		return []*Server{p.one}, nil
	}
	return p.cluster.masters(ctx)
}

func (p *Pool) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	var err error
	if p.cluster != nil {
		err = p.cluster.client.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers() {
		_ = s.Client().Close() // closed twice where the cluster has it, too
	}
	if p.surplus != nil {
		_ = p.surplus.Client().Close()
	}
	return err
}

// client returns a go-redis client without retries, which would execute calls twice.
func (p *Pool) client(addr string) *redis.Client {
	c := p.config
	o := redis.Options{Addr: addr, Dialer: p.dial.context, CredentialsProvider: p.credentials, DB: p.place.db,
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		ReadTimeout: max(c.Timeout, minIOTimeout), DialTimeout: max(c.Timeout, minDialTimeout),
		PoolSize: c.PoolSize, PipelinePoolSize: -1}
	var client *redis.Client
	if p.place.kind != sentinels {
		client = redis.NewClient(&o)
	} else {
		client = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: p.place.master, SentinelAddrs: p.place.hosts,
			SentinelUsername: c.SentinelUser, SentinelPassword: c.SentinelPassword, Dialer: o.Dialer,
			CredentialsProvider: o.CredentialsProvider, DB: o.DB, Protocol: o.Protocol, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
			ContextTimeoutEnabled: true, ReadTimeout: o.ReadTimeout, DialTimeout: o.DialTimeout, PoolSize: o.PoolSize,
			PipelinePoolSize: -1})
	}
	if p.closed.Load() {
		_ = client.Close()
	}
	return client
}

const slots = 1 << 14

// Slot returns a key's slot in a cluster: CRC-16 (XMODEM) of the key, or of the part in its first braces.
func (p *Pool) Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ p.crc[byte(crc>>8)^key[i]]
	}
	return crc % slots
}

func crcTable() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}

type ByReason [13]atomic.Uint64 // in the order of Reasons

func (c *ByReason) Add(r store.Reason) { c[slices.Index(Reasons(), r)].Add(1) }

func (c *ByReason) All() map[store.Reason]uint64 {
	m := map[store.Reason]uint64{}
	for i, r := range Reasons() {
		m[r] = c[i].Load()
	}
	return m
}

type counts struct {
	loaded, redirected atomic.Uint64
	failed             ByReason
}

func (p *Pool) Stats() []store.ServerStats {
	var all []store.ServerStats
	for _, s := range p.servers() {
		stats := store.ServerStats{Addr: s.Addr, Circuit: s.breaker.State().String(), Error: s.reasonOpen(),
			Loaded: s.counts.loaded.Load(), Redirected: s.counts.redirected.Load(), Failed: s.counts.failed.All(),
			Conns: int(s.Client().PoolStats().TotalConns)}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b store.ServerStats) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}
