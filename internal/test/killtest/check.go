package killtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// looks is the number of keys in a pipeline of look calls.
const looks = 500

// check looks at all keys, and takes their states as the new base.
func (c *client) check(ctx context.Context, addr string) (Found, error) {
	rdb, hangUp, err := dial(ctx, addr, c.number)
	if err != nil {
		return Found{}, err
	}
	defer hangUp()
	calls := make([][]any, len(c.keys))
	for i, key := range c.keys {
		calls[i] = kindOf(i).look(key)
	}
	got := make([]int64, 0, len(c.keys))
	for some := range slices.Chunk(calls, looks) {
		units, err := unitsBy(ctx, rdb, some)
		if err != nil {
			return Found{}, fmt.Errorf("client %d: %w", c.number, err)
		}
		got = append(got, units...)
	}
	found := c.compare(got)
	copy(c.base, got)
	copy(c.state, got)
	c.steps = c.steps[:0]
	c.replied.Store(0)
	c.confirmed.Store(0)
	return found, nil
}

// Charge charges one unit to each funnel of database 0.
func Charge(ctx context.Context, addr string, keys ...string) error {
	_, err := ask(ctx, addr, keys, 1)
	return err
}

// Charged returns the units charged to funnels of database 0.
func Charged(ctx context.Context, addr string, keys ...string) ([]int64, error) {
	return ask(ctx, addr, keys, 0)
}

// ask charges units to funnels of database 0, and returns those that they have then.
func ask(ctx context.Context, addr string, keys []string, units int64) ([]int64, error) {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	calls := make([][]any, len(keys))
	for i, key := range keys {
		calls[i] = funnel.charge(key, units)
	}
	return unitsBy(ctx, rdb, calls)
}

// Sync returns when all answered calls are durable.
func Sync(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return err
	}
	defer hangUp()
	return waitAOF(ctx, rdb)
}

// unitsBy returns the units that the replies to look report.
func unitsBy(ctx context.Context, rdb *redis.Conn, calls [][]any) ([]int64, error) {
	p := rdb.Pipeline()
	replies := make([]*redis.Cmd, len(calls))
	for i, args := range calls {
		replies[i] = p.Do(ctx, args...)
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	units := make([]int64, len(calls))
	for i, r := range replies {
		n, ok := unitsOf(r.Val())
		if !ok {
			return nil, fmt.Errorf("%v: %v, %w", r.Args(), r.Val(), r.Err())
		}
		units[i] = n
	}
	return units, nil
}

// compare lists keys whose state is neither that of the last confirmed step nor that of a later one.
func (c *client) compare(got []int64) Found {
	confirmed := int(c.confirmed.Load())
	found := Found{Keys: len(got), Confirmed: confirmed, Unsure: len(c.steps) - confirmed}
	kept := slices.Clone(c.base)
	for _, s := range c.steps[:confirmed] {
		kept[s.key] = s.units
	}
	after := map[int][]int64{}
	for _, s := range c.steps[confirmed:] {
		after[s.key] = append(after[s.key], s.units)
	}
	for key, units := range got {
		switch {
		case units == kept[key]:
		case slices.Contains(after[key], units):
			found.Survived++
		default:
			found.Wrong = append(found.Wrong, fmt.Sprintf("database %d: %.20s has %d units, was to keep %d, and was then to have %v",
				c.number, c.keys[key], units, kept[key], after[key]))
		}
	}
	return found
}
