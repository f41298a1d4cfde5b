package transfer

import (
	"bytes"
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
)

// stays reports whether a target's state stays where another one arrives, so that nobody's debt is forgiven: the one that expires
// later, and of two that expire at once the one that leaves less. ok is false if they are of different types.
func stays(held, other *limiter.State) (stays, ok bool) {
	switch {
	case held.Kind.Type() != other.Kind.Type():
		return false, false
	case held.Kind.Type() == limiter.Funnel.Type():
		a, _ := held.TAT(math.MinInt64) // which a funnel has
		b, _ := other.TAT(math.MinInt64)
		return a >= b, true
	case held.ExpiresNs != other.ExpiresNs:
		return held.ExpiresNs > other.ExpiresNs, true
	case bytes.Equal(held.Payload, other.Payload):
		return true, true
	}
	return remaining(held) < remaining(other), true
}

// remaining is how many units are left of a limiter whose expiry does not tell, and 0 for others.
func remaining(s *limiter.State) int64 {
	copied := *s
	copied.Payload = bytes.Clone(s.Payload)
	switch s.Kind {
	case limiter.Bucket:
		o := limiter.Operation{Verb: limiter.Level}
		_, _ = o.Do(&copied, math.MinInt64) // a bucket has a level
		return o.Count
	case limiter.FixedWindow:
		limit, _ := window.NewLimit(funnel.Seconds, math.MaxInt64, 1) // the longest that there is
		rule := limiter.Rule{Kind: limiter.FixedWindow, Window: limit}
		result, _, _ := rule.Decide(&copied, math.MinInt64, 0)
		return result.Remaining
	default:
		return 0
	}
}
