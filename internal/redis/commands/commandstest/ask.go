package commandstest

import (
	"strconv"

	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// Request returns the request that is like a call, and false for a call that has no like.
func Request(call ...string) (q decide.Request, ok bool) {
	if len(call) < 3 {
		return q, false
	}
	q = decide.Request{Command: call[0], Key: []byte(call[1]), Quantity: 1}
	if last := len(call) - 1; call[last] == "ATMOST" {
		q.Spec.Flags, call = limiter.AtMost, call[:last]
	}
	s, numbers, rest := &q.Spec, 2, call[2:]
	switch s.Unit = funnel.WholeSeconds; call[0] {
	case "CL.CHECK":
		q.Limit, q.Key, numbers, rest = q.Key, []byte(call[2]), 0, call[3:]
	case "CL.FIXEDWINDOW":
		s.Kind = limiter.FixedWindow
	case "CL.SLIDINGWINDOW":
		s.Kind = limiter.SlidingWindow
		if last := len(rest) - 1; rest[last] == "APPROX" {
			s.Kind, rest = limiter.ApproxWindow, rest[:last]
		}
	case "CL.THROTTLE", "RL.THROTTLE", "CL.REFUND":
		numbers, s.Unit = 3, funnel.Seconds
	case "CL.PTHROTTLE":
		numbers, s.Unit = 3, funnel.Milliseconds
	case "CL.TOKENBUCKET":
		numbers, s.Unit, s.Reading = 3, funnel.Seconds, funnel.Capacity
	default:
		return q, false
	}
	if len(rest) < numbers || len(rest) > numbers+1 {
		return q, false
	}
	for i, word := range rest {
		n, err := strconv.ParseInt(word, 10, 64)
		switch {
		case err != nil:
			return q, false
		case i < numbers:
			s.Numbers[i] = n
		default:
			q.Quantity = n
		}
	}
	if call[0] == "CL.REFUND" {
		q.Quantity = -q.Quantity
	}
	return q, true
}
