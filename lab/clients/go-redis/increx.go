package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"cellserver/lab/clients/internal/expect"
)

// increx uses go-redis's methods for integers and for floating-point numbers.
func increx(ctx context.Context, client *redis.Client) error {
	call := func(c expect.Increment) (value, added float64, err error) {
		var expiration *redis.ExpirationOption
		if c.Expiry != "" {
			expiration = &redis.ExpirationOption{Mode: redis.ExpirationMode(c.Expiry), Value: c.At}
		}
		number := func(n *float64) (float64, bool) {
			if n == nil {
				return 0, false
			}
			return *n, true
		}
		by, hasBy := number(c.By)
		lower, hasLower := number(c.Lower)
		upper, hasUpper := number(c.Upper)
		if c.Float {
			r, err := client.IncrEXFloat(ctx, "increx", redis.IncrEXFloatArgs{
				By: by, LBound: lower, HasLBound: hasLower, UBound: upper, HasUBound: hasUpper,
				Saturate: c.Saturate, Expiration: expiration, ENX: c.ENX,
			}).Result()
			return r.Value, r.AppliedIncrement, err
		}
		r, err := client.IncrEXInt(ctx, "increx", redis.IncrEXIntArgs{
			By: int64(by), HasBy: hasBy, LBound: int64(lower), HasLBound: hasLower, UBound: int64(upper), HasUBound: hasUpper,
			Saturate: c.Saturate, Expiration: expiration, ENX: c.ENX,
		}).Result()
		return float64(r.Value), float64(r.AppliedIncrement), err
	}
	return expect.Increx(call, func() (int64, error) { return client.Do(ctx, "TTL", "increx").Int64() })
}
