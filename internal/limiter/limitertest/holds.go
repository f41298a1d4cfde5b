package limitertest

import (
	"encoding/binary"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Budget returns a limit on which units are held: a funnel, and a window of each kind that holds, of capacity
// units for a period in seconds.
func Budget(units, periodSec int64) (*limiter.NamedLimit, error) {
	l, err := funnel.NewLimit(funnel.Capacity, units, units, periodSec)
	if err != nil {
		return nil, err
	}
	rules := []limiter.NamedRule{limiter.PlainRule(l, periodSec*int64(funnel.Seconds.Ns()))}
	for _, kind := range []limiter.Kind{limiter.FixedWindow, limiter.ApproxWindow} {
		r, err := Rule(kind, units, units, periodSec)
		if err != nil {
			return nil, err
		}
		rules = append(rules, limiter.OtherRule(r, kind.String()))
	}
	return limiter.NewNamedLimit(rules, 0), nil
}

// HoldID returns the id of a hold.
func HoldID(n int) (id limiter.HoldID) {
	binary.LittleEndian.PutUint64(id[:], uint64(n))
	return id
}

// Held returns a state of the limit with a number of holds of one unit each. Some stay charged, and the
// first ends long before the others.
func Held(n *limiter.NamedLimit, nowNs int64, holds int) (s limiter.State, err error) {
	for i := range holds {
		h := limiter.Hold{ID: HoldID(i), Call: limiter.HoldCall{Pairs: 7, All: uint32(i)}, TTLNs: LifeNs, Charge: i%3 == 1}
		if i == 0 {
			h.TTLNs = LifeNs / 4
		}
		r := limiter.OfNamed(n.Holding(&h))
		if _, _, err = r.Decide(&s, nowNs, 1); err != nil {
			return s, err
		}
	}
	return s, nil
}
