package servers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

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
