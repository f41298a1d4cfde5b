// Package servers is the Redis or Valkey servers that a remote store keeps its keys in: one, the master that sentinels name, or
// the masters of a cluster. It sends scripts to them, and tells apart what a server has certainly not executed, which may be sent
// again, from what it may have executed, which must not be. All is safe for concurrent use.
package servers

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Config is which servers, and how to talk to them.
type Config struct {
	// URL is redis://[user:password@]host[:port][/db], redis-cluster://[user:password@]host[:port],host[:port]... or
	// redis-sentinel://[user:password@]host[:port],.../master[/db]; with rediss, rediss-cluster and rediss-sentinel over TLS.
	// The user and password are those of the servers, and percent-encoded.
	URL string
	// Password is the servers', not encoded, if the URL has none.
	Password string
	// SentinelUser and SentinelPassword are for the sentinels, if they want a password.
	SentinelUser, SentinelPassword string

	// CAFile has the certificates, in PEM, that the servers' must be signed by. None: the system's.
	CAFile string
	// CertFile and KeyFile are our own certificate for servers that ask for one.
	CertFile, KeyFile string
	// ServerName is what the servers' certificates are for. None: the host that is connected to.
	ServerName string

	Timeout  time.Duration // for Do and where a context has no deadline; 50 ms if 0
	PoolSize int           // connections to a server at most; 16 if 0
	Log      *slog.Logger  // of servers that go away and come back; may be nil
}

const (
	// maxServers is more than a cluster has: what names more of them, one after the other, is no cluster.
	maxServers = 4096
	// surplusAddr is the address of no server.
	surplusAddr = "the cluster:0"
)

const (
	defaultTimeout  = 50 * time.Millisecond
	defaultPoolSize = 16
	// What is not part of a decision, such as the map of a cluster's slots, and a connection, may take longer than one.
	minIOTimeout   = 250 * time.Millisecond
	minDialTimeout = time.Second
)

// Pool is all the servers.
type Pool struct {
	place  place
	config Config
	dial   dialer
	crc    [256]uint16
	start  time.Time
	closed atomic.Bool

	password atomic.Pointer[string] // that new connections log in with

	one     *Server // unless it is a cluster
	cluster *cluster

	byAddr atomic.Pointer[map[string]*Server] // never changed, but replaced: each request looks here
	mu     sync.Mutex                         // for who replaces it, or a server's client

	surplus *Server // guarded by mu: stands for all beyond maxServers
}

// Check returns an error for a URL or file that is wrong, as Open does. It opens nothing.
func Check(config Config) error {
	_, _, err := config.read()
	return err
}

// read returns what the URL says, and what connects to it.
func (c *Config) read() (at place, dial dialer, err error) {
	if at, err = parse(c.URL, c.Password); err == nil {
		dial, err = newDialer(at.tls, *c)
	}
	return at, dial, err
}

// Open returns the servers of a URL. It does not wait for connections, so it returns no error if they
// cannot be made; it does for a wrong URL or file.
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

// SetPassword sets what new connections log in with, and reports whether that is something else. Those that are open stay, as the
// servers let them.
func (p *Pool) SetPassword(password string) (changed bool) {
	before := p.password.Swap(&password)
	return before == nil || *before != password
}

func (p *Pool) credentials() (user, password string) { return p.place.user, *p.password.Load() }

// String is the URL without the user and password.
func (p *Pool) String() string { return p.place.String() }

// Clustered is whether keys of different slots may be on different servers.
func (p *Pool) Clustered() bool { return p.cluster != nil }

// OneStep is whether a script may have all these keys.
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

// Of returns the server that decides about a key. It does not wait: where the slots of a cluster are not known yet, they are
// asked for in the background and the error is a *Failed.
func (p *Pool) Of(ctx context.Context, key string) (*Server, error) {
	if p.cluster == nil {
		return p.one, nil
	}
	return p.cluster.of(ctx, key)
}

// servers returns those that are known, by address.
func (p *Pool) servers() map[string]*Server {
	if all := p.byAddr.Load(); all != nil {
		return *all
	}
	return nil
}

// At returns the server at an address, as a redirection or a cluster has it.
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
	all := make(map[string]*Server, len(p.servers())+1)
	maps.Copy(all, p.servers())
	all[addr] = s
	p.byAddr.Store(&all)
	return s
}

// Masters returns all servers that decide about keys.
func (p *Pool) Masters(ctx context.Context) ([]*Server, error) {
	if p.cluster == nil {
		return []*Server{p.one}, nil
	}
	return p.cluster.masters(ctx)
}

// Close ends all connections.
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

// client returns a client of the server at an address, with retries off: nothing is ever sent twice behind our back.
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

// Slot is the slot that a cluster keeps a key in: CRC-16 (XMODEM) of the key, or of the part in its first braces.
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
