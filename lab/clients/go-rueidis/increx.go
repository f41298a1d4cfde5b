package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"cellserver/lab/clients/internal/expect"
)

// increx uses rueidis's builder, which orders the options by its types.
func increx(ctx context.Context, client rueidis.Client) error {
	call := func(c expect.Increment) (value, added float64, err error) {
		reply, err := client.Do(ctx, built(client.B(), c)).ToArray()
		if err != nil || len(reply) != 2 {
			return 0, 0, fmt.Errorf("%d elements, %w", len(reply), err)
		}
		if value, err = number(reply[0]); err != nil {
			return 0, 0, err
		}
		added, err = number(reply[1])
		return value, added, err
	}
	return expect.Increx(call, func() (int64, error) { return client.Do(ctx, client.B().Ttl().Key("increx").Build()).AsInt64() })
}

// number returns an integer, or a double.
func number(m rueidis.RedisMessage) (float64, error) {
	if m.IsInt64() {
		n, err := m.ToInt64()
		return float64(n), err
	}
	return m.ToFloat64()
}

// built is the command of a call. A type of the builder has only the methods for what may follow.
func built(b rueidis.Builder, c expect.Increment) rueidis.Completed {
	key := b.Increx().Key("increx")
	switch {
	case c.By == nil:
		return key.Build()
	case c.Float && c.Lower != nil:
		return key.Byfloat(*c.By).Lbound(*c.Lower).Ubound(*c.Upper).Build()
	case c.Float && c.Saturate:
		return key.Byfloat(*c.By).Ubound(*c.Upper).Saturate().PxMilliseconds(c.At).Build()
	case c.Float:
		return key.Byfloat(*c.By).Ubound(*c.Upper).Build()
	}
	by := key.Byint(int64(*c.By))
	switch {
	case c.Lower != nil && c.Upper != nil:
		return by.Lbound(*c.Lower).Ubound(*c.Upper).Build()
	case c.Lower != nil:
		return by.Lbound(*c.Lower).Saturate().PxMilliseconds(c.At).Enx().Build()
	case c.Saturate:
		return by.Ubound(*c.Upper).Saturate().ExSeconds(c.At).Build()
	case c.Upper != nil:
		return by.Ubound(*c.Upper).ExSeconds(c.At).Build()
	case c.Expiry == "EXAT":
		return by.ExatTimestamp(c.At).Build()
	case c.Expiry == "PXAT":
		return by.PxatMillisecondsTimestamp(c.At).Build()
	case c.Expiry == "PERSIST":
		return by.Persist().Build()
	case c.ENX:
		return by.ExSeconds(c.At).Enx().Build()
	}
	panic("a call without its words: " + strconv.Quote(c.Expiry))
}
