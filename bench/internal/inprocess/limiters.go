package inprocess

import (
	"context"
	"sync"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// library is a limiter in this process. open returns a function that requests one unit for each of a batch of
// keys.
type library struct {
	name string
	open func(keys int) (take func(batch [][]byte) error, err error)
}

func limiters() []library {
	return []library{
		{"cellserver, batches of 128", func(int) (func([][]byte) error, error) { return openShard(batch) }},
		{"cellserver, one at a time", func(int) (func([][]byte) error, error) { return openShard(1) }},
		{"throttled/v2 memstore", openThrottled},
		{"sethvargo/go-limiter memorystore", openSethvargo},
		{"ulule/limiter/v3 memory", openUlule},
		{"x/time/rate in a map with a mutex", openRate},
	}
}

// The limit of all calls. Its period is long so that no key expires during the measurement.
const (
	burst     = 1_000_000
	perPeriod = 1
	period    = 1000 * time.Second
)

func openShard(size int) (func([][]byte) error, error) {
	limit, err := funnel.NewLimit(funnel.Burst, burst, perPeriod, int64(period/time.Second))
	if err != nil {
		return nil, err
	}
	states := shard.New()
	requests := make([]store.Request, size)
	start := time.Now()
	return func(keys [][]byte) error {
		for len(keys) > 0 {
			n := min(size, len(keys))
			for i, key := range keys[:n] {
				requests[i] = store.Request{Key: store.Key{Name: key}, Rule: limiter.OfFunnel(limit), Quantity: 1}
			}
			states.Throttle(start.UnixNano()+int64(time.Since(start)), requests[:n])
			keys = keys[n:]
		}
		return nil
	}, nil
}

func openThrottled(keys int) (func([][]byte) error, error) {
	store, err := throttledstore.NewCtx(2 * keys)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(perPeriod, period), MaxBurst: burst}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return each(func(key string) error {
		_, _, err := l.RateLimitCtx(ctx, key, 1)
		return err
	}), nil
}

func openSethvargo(int) (func([][]byte) error, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: burst, Interval: period})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	return each(func(key string) error {
		_, _, _, _, err := store.Take(ctx, key)
		return err
	}), nil
}

func openUlule(int) (func([][]byte) error, error) {
	l := ulule.New(ululestore.NewStore(), ulule.Rate{Period: period, Limit: burst})
	ctx := context.Background()
	return each(func(key string) error {
		_, err := l.Get(ctx, key)
		return err
	}), nil
}

func openRate(int) (func([][]byte) error, error) {
	var mu sync.Mutex // guards limiters
	limiters := map[string]*rate.Limiter{}
	return func(keys [][]byte) error {
		for _, key := range keys {
			mu.Lock()
			l := limiters[string(key)]
			if l == nil {
				l = rate.NewLimiter(rate.Every(period/perPeriod), burst)
				limiters[string(key)] = l
			}
			mu.Unlock()
			l.Allow()
		}
		return nil
	}, nil
}

// each converts each key to a string, as a server with these libraries would have to.
func each(take func(key string) error) func([][]byte) error {
	return func(keys [][]byte) error {
		for _, key := range keys {
			if err := take(string(key)); err != nil {
				return err
			}
		}
		return nil
	}
}
