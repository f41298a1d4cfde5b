package transfer

import (
	"bytes"
	"math"

	"cellserver/internal/limiter"
)

// stays reports whether a target's state stays when another arrives, so that no debt is forgiven: the one
// that expires later or, at the same time, the one that leaves less. ok is false for states of different
// types.
func stays(held, other *limiter.State) (stays, ok bool) {
	switch {
	case held.Kind.Type() != other.Kind.Type():
		return false, false
	case held.Kind.Type() == limiter.Funnel.Type():
		a, _ := held.TAT(math.MinInt64) // never fails for a funnel
		b, _ := other.TAT(math.MinInt64)
		return a >= b, true
	case held.ExpiresNs != other.ExpiresNs:
		return held.ExpiresNs > other.ExpiresNs, true
	case bytes.Equal(held.Payload, other.Payload):
		return true, true
	}
	return held.Left() < other.Left(), true
}
