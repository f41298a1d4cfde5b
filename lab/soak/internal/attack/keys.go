package attack

import (
	"context"
	"fmt"
	"strings"

	"cellserver/lab/soak/internal/target"
)

// longKeys is the number of keys of 4 KiB for globs.
const longKeys = 1000

// longKey ends in digits, so that no pattern ending in b matches.
func longKey(i int) string { return strings.Repeat("a", 4080) + fmt.Sprintf("%06d", i) }

// Prepare fills the store with long keys and a number of short ones for an hour; eviction takes the floods'
// keys first.
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

// Fill creates distinct short keys for an hour, and ignores errors.
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
