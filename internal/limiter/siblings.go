package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter/window"
)

// decideSibling decides for the kinds that have a payload of their own. It sets the result where that is to be: each copy of what
// was just written would have to wait until it is in memory.
func (r *Rule) decideSibling(s *State, nowNs, quantity int64, result *funnel.Result) (changed bool, err error) {
	o := window.Options{Unit: r.Unit, CountDenied: r.Flags&CountDenied != 0}
	switch {
	case r.Kind == FixedWindow:
		s.Payload, s.ExpiresNs, *result, changed = r.Window.Fixed(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case r.Kind == SlidingWindow:
		s.Payload, s.ExpiresNs, *result, changed = r.Window.Sliding(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case r.Kind == ApproxWindow:
		s.Payload, s.ExpiresNs, *result, changed = r.Window.Approx(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case r.Kind == Bucket:
		s.Payload, s.ExpiresNs, *result, changed = r.Bucket.Take(s.Payload, s.ExpiresNs, nowNs, quantity)
	case r.Kind == Named && r.Named != nil:
		changed = r.Named.decide(s, nowNs, quantity, r.Unit, result)
	default:
		return false, ErrWrongType
	}
	return changed, nil
}
