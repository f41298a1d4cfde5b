package remotetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ExactLimit allows all calls of a test, and Debits can count them afterwards: no unit leaks meanwhile.
func ExactLimit() Limit { return Limit{MaxBurst: 1_000_000, Count: 1, PeriodSeconds: 3600} }

// Debits returns the number of calls with ExactLimit charged to a key since a time, from its state: the first
// one set it to its time plus an interval, each other added one, to the nanosecond.
func Debits(ctx context.Context, client redis.Cmdable, key string, since time.Time) (int64, error) {
	tat, err := client.Get(ctx, key).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remotetest: state of %q: %w", key, err)
	}
	return (tat - since.UnixNano()) / int64(ExactLimit().Interval()), nil
}
