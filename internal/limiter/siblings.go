package limiter

import (
	"cellserver/internal/funnel"
	"cellserver/internal/window"
)

// decideSibling decides for the kinds that have a payload of their own.
func (r *Rule) decideSibling(s *State, nowNs, quantity int64) (result funnel.Result, changed bool, err error) {
	if r.Kind == Named && r.Named != nil {
		return r.Named.decide(s, nowNs, quantity, r.Unit)
	}
	o := window.Options{Unit: r.Unit, CountDenied: r.Flags&CountDenied != 0}
	switch r.Kind {
	case FixedWindow:
		s.Payload, s.ExpiresNs, result, changed = r.Window.Fixed(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case SlidingWindow:
		s.Payload, s.ExpiresNs, result, changed = r.Window.Sliding(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case ApproxWindow:
		s.Payload, s.ExpiresNs, result, changed = r.Window.Approx(s.Payload, s.ExpiresNs, nowNs, quantity, o)
	case Bucket:
		s.Payload, s.ExpiresNs, result, changed = r.Bucket.Take(s.Payload, s.ExpiresNs, nowNs, quantity)
	default:
		return result, false, ErrWrongType
	}
	return result, changed, nil
}
