package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
)

// rueidisBy has the library make its client, which is not go-redis.
func rueidisBy(
	client *redis.Client, prefix string, limit int, window time.Duration,
) (rueidislimiter.RateLimiterClient, error) {
	options := client.Options()
	return rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{options.Addr}, Password: options.Password},
		KeyPrefix:    prefix, Limit: limit, Window: window,
	})
}

func rueidisLimits(ctx context.Context, client *redis.Client) (saw []string, err error) {
	limiter, err := rueidisBy(client, "hour", 5, time.Hour)
	if err != nil {
		return nil, err
	}
	for _, n := range []int64{0, 1, 4, 0, 1} {
		r, err := limiter.AllowN(ctx, "k", n)
		if err != nil {
			return saw, err
		}
		reset := within("reset", time.Until(time.UnixMilli(r.ResetAtMs)), time.Hour)
		saw = append(saw, fmt.Sprintf("%d: %s, remaining %d, %s", n, word(r.Allowed), r.Remaining, reset))
	}
	brief, err := rueidisBy(client, "second", 1, time.Second)
	if err != nil {
		return saw, err
	}
	more, err := again(func() (bool, error) {
		r, err := brief.Allow(ctx, "k")
		return r.Allowed, err
	})
	return append(saw, more...), err
}

func rueidisGone(_ context.Context, client *redis.Client) ([]string, error) {
	_, err := rueidisBy(client, "gone", 1, time.Hour)
	return []string{returned(err) + " at start"}, nil
}
