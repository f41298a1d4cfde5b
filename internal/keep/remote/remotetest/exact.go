package remotetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ExactLimit is one under which all calls of a test are allowed, and of which Debits can tell their number afterwards: none of
// its units leaks away meanwhile.
func ExactLimit() Limit { return Limit{MaxBurst: 1_000_000, Count: 1, PeriodSeconds: 3600} }

// Debits reads a key's state from its server, and returns how many calls with ExactLimit were debited from it since. The first
// of them has set it to its own time and one interval, and each other has added one, to the nanosecond.
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
