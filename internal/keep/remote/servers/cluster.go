package servers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// cluster knows which server has which slots. go-redis's client keeps the map, and is used for nothing else: what it sends, it
// would send again after a time-out.
type cluster struct {
	pool     *Pool
	client   *redis.ClusterClient
	known    atomic.Bool // the slots were seen once
	loading  atomic.Bool
	err      atomic.Pointer[Failed] // why they were not
	noticeNs atomic.Int64           // when the map was asked for last, since the start
	forgetNs atomic.Int64           // when servers were forgotten last
}

// The map is asked for again at most once in so long, and at least once.
const (
	minReload = 100 * time.Millisecond
	maxReload = 10 * time.Second
	// Whoever has left the cluster is forgotten.
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

// lend returns the client of a server to the cluster's client, which closes it when the server has had no slots for a minute.
func (p *Pool) lend(addr string) *redis.Client {
	s := p.At(addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.lent && !p.closed.Load() { // it was closed, or there would be no question
		s.client.Store(p.client(addr))
	}
	s.lent = true
	return s.Client()
}

// load asks for the map in the background, until it is known.
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

// of does not wait once the map is known, and nor does go-redis.
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
	var mu sync.Mutex
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

// noticed is told when something may mean that slots have moved, or that a replica was promoted.
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

// due is true for one caller every so often.
func due(lastNs *atomic.Int64, now, every time.Duration) bool {
	last := lastNs.Load()
	return (last == 0 || int64(now)-last >= int64(every)) && lastNs.CompareAndSwap(last, int64(now))
}
