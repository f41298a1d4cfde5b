package attack

import (
	"context"
	"fmt"
	"strings"

	"cellserver/soak/internal/target"
)

// longKeys is the number of keys of 4 KiB that globs are matched with.
const longKeys = 1000

// longKey ends in digits, so that a pattern that ends in b never matches.
func longKey(i int) string { return strings.Repeat("a", 4080) + fmt.Sprintf("%06d", i) }

// Prepare fills the store with what attacks walk over: long keys, and a number of short ones. They stay for an hour, so
// that a server that evicts takes the keys of floods first.
func Prepare(ctx context.Context, s *target.Server, keys int) error {
	c, err := s.Dial(ctx, "tcp")
	if err != nil {
		return err
	}
	defer c.Close()
	name := func(i int) string { return fmt.Sprintf("walked:%08d", i) }
	if err := fill(c, keys, name); err != nil {
		return err
	}
	return fill(c, longKeys, longKey)
}

// Fill makes distinct short keys that stay for an hour, and ignores what it is answered.
func Fill(ctx context.Context, s *target.Server, prefix string, keys int) error {
	c, err := s.Dial(ctx, "tcp")
	if err != nil {
		return err
	}
	defer c.Close()
	return fill(c, keys, func(i int) string { return fmt.Sprintf("%s%08d", prefix, i) })
}

func fill(c *target.Conn, keys int, name func(int) string) error {
	for done := 0; done < keys; {
		var b Batch
		for ; done < keys && b.Replies < 500; done++ {
			b.Add("CL.THROTTLE", name(done), "0", "1", "3600")
		}
		if _, err := c.Write(b.Bytes); err != nil {
			return fmt.Errorf("make keys: %w", err)
		}
		for range b.Replies {
			if _, err := c.Reply(); err != nil {
				return fmt.Errorf("make keys: %w", err)
			}
		}
	}
	return nil
}
