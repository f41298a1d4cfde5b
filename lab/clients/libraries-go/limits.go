package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

func rateAllow(ctx context.Context, client *redis.Client) ([]string, error) {
	limiter := redis_rate.NewLimiter(client)
	saw, err := calls(4, func() (string, error) {
		r, err := limiter.Allow(ctx, "allow", redis_rate.PerHour(3))
		if err != nil {
			return "", err
		}
		if r.Allowed == 0 {
			return "limited, " + within("retry after", r.RetryAfter, 20*time.Minute), nil
		}
		return "allowed, " + within("reset after", r.ResetAfter, time.Hour), nil
	})
	if err != nil {
		return saw, err
	}
	more, err := again(func() (bool, error) {
		r, err := limiter.Allow(ctx, "again", redis_rate.PerSecond(1))
		return err == nil && r.Allowed == 1, err
	})
	return append(saw, more...), err
}

func rateOthers(ctx context.Context, client *redis.Client) (saw []string, err error) {
	limiter := redis_rate.NewLimiter(client)
	perHour := redis_rate.PerHour(5)
	for _, call := range []func() (*redis_rate.Result, error){
		func() (*redis_rate.Result, error) { return limiter.AllowN(ctx, "n", perHour, 3) },
		func() (*redis_rate.Result, error) { return limiter.AllowN(ctx, "n", perHour, 3) },
		func() (*redis_rate.Result, error) { return limiter.AllowAtMost(ctx, "n", perHour, 1) },
		func() (*redis_rate.Result, error) {
			if err := limiter.Reset(ctx, "n"); err != nil {
				return nil, err
			}
			return limiter.AllowN(ctx, "n", perHour, 4)
		},
	} {
		r, err := call()
		if err != nil {
			return saw, err
		}
		saw = append(saw, strconv.Itoa(r.Allowed))
	}
	return saw, nil
}

func rateGone(ctx context.Context, client *redis.Client) ([]string, error) {
	_, err := redis_rate.NewLimiter(client).Allow(ctx, "gone", redis_rate.PerHour(1))
	return []string{returned(err)}, nil
}

// returned says whether a library passes an error on.
func returned(err error) string {
	if err != nil {
		return "an error"
	}
	return "no error"
}

func throttledBy(client *redis.Client, prefix string, quota throttled.RateQuota) (http.Handler, error) {
	store, err := goredisstore.NewCtx(client, prefix)
	if err != nil {
		return nil, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	limits := throttled.HTTPRateLimiterCtx{RateLimiter: limiter, VaryBy: &throttled.VaryBy{RemoteAddr: true}}
	return limits.RateLimit(handler()), nil
}

func throttledMiddleware(ctx context.Context, client *redis.Client) ([]string, error) {
	h, err := throttledBy(client, "hour:", throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: 2})
	if err != nil {
		return nil, err
	}
	saw := requests(ctx, h, 4, "X-RateLimit-Limit", "X-RateLimit-Remaining")
	h, err = throttledBy(client, "second:", throttled.RateQuota{MaxRate: throttled.PerSec(1)})
	if err != nil {
		return saw, err
	}
	more, err := again(allowedBy(ctx, h))
	return append(saw, more...), err
}

func throttledGone(ctx context.Context, client *redis.Client) ([]string, error) {
	h, err := throttledBy(client, "gone:", throttled.RateQuota{MaxRate: throttled.PerHour(1)})
	if err != nil {
		return nil, err
	}
	return failing(ctx, h), nil
}

func ululeBy(client *redis.Client, prefix string, rate limiter.Rate) (*limiter.Limiter, error) {
	store, err := ululeredis.NewStoreWithOptions(client, limiter.StoreOptions{Prefix: prefix})
	if err != nil {
		return nil, err
	}
	return limiter.New(store, rate), nil
}

func ululeMiddleware(ctx context.Context, client *redis.Client) ([]string, error) {
	l, err := ululeBy(client, "hour", limiter.Rate{Period: time.Hour, Limit: 3})
	if err != nil {
		return nil, err
	}
	h := stdlib.NewMiddleware(l).Handler(handler())
	saw := requests(ctx, h, 4, "X-RateLimit-Limit", "X-RateLimit-Remaining")
	if l, err = ululeBy(client, "second", limiter.Rate{Period: time.Second, Limit: 1}); err != nil {
		return saw, err
	}
	more, err := again(allowedBy(ctx, stdlib.NewMiddleware(l).Handler(handler())))
	return append(saw, more...), err
}

func ululeOthers(ctx context.Context, client *redis.Client) (saw []string, err error) {
	l, err := ululeBy(client, "others", limiter.Rate{Period: time.Hour, Limit: 5})
	if err != nil {
		return nil, err
	}
	for _, call := range []func() (limiter.Context, error){
		func() (limiter.Context, error) { return l.Peek(ctx, "k") },
		func() (limiter.Context, error) { return l.Increment(ctx, "k", 4) },
		func() (limiter.Context, error) { return l.Increment(ctx, "k", 2) },
		func() (limiter.Context, error) { return l.Peek(ctx, "k") },
		func() (limiter.Context, error) { return l.Reset(ctx, "k") },
		func() (limiter.Context, error) { return l.Get(ctx, "k") },
	} {
		c, err := call()
		if err != nil {
			return saw, err
		}
		saw = append(saw, fmt.Sprintf("%s, remaining %d", word(!c.Reached), c.Remaining))
	}
	return saw, nil
}

func ululeGone(_ context.Context, client *redis.Client) ([]string, error) {
	_, err := ululeBy(client, "gone", limiter.Rate{Period: time.Hour, Limit: 1})
	return []string{returned(err) + " at start"}, nil
}

// httprateBy has the library make its client, as its users do.
func httprateBy(
	client *redis.Client, prefix string, limit int, window time.Duration, local bool,
) (http.Handler, error) {
	options := client.Options()
	host, port, err := net.SplitHostPort(options.Addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	counter := httprateredis.WithRedisLimitCounter(&httprateredis.Config{
		Host: host, Port: uint16(number), Password: options.Password, PrefixKey: prefix,
		WindowLength: window, FallbackDisabled: !local, FallbackTimeout: time.Minute,
	})
	return httprate.LimitBy(limit, window, httprate.Key("k"), counter)(handler()), nil
}

func httprateMiddleware(ctx context.Context, client *redis.Client) ([]string, error) {
	const day = 24 * time.Hour
	h, err := httprateBy(client, "day", 3, day, false)
	if err != nil {
		return nil, err
	}
	saw := requests(ctx, h, 4, "X-RateLimit-Limit", "X-RateLimit-Remaining")
	if h, err = httprateBy(client, "second", 1, time.Second, false); err != nil {
		return saw, err
	}
	more, err := again(allowedBy(ctx, h))
	return append(saw, more...), err
}

func httprateGone(ctx context.Context, client *redis.Client) (saw []string, err error) {
	for _, local := range []bool{true, false} {
		h, err := httprateBy(client, "gone", 1, time.Hour, local)
		if err != nil {
			return saw, err
		}
		saw = append(saw, failing(ctx, h)...)
	}
	return saw, nil
}
