package limiter

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"cellserver/internal/funnel"
)

// MaxWindows bounds the windows of a named limit, whose periods differ.
const MaxWindows = 16

const windowBytes = 16 // its period, which identifies it, and TAT

type Window struct {
	Funnel   funnel.Limit
	PeriodNs int64 // identifies its state
}

// NamedLimit decides requests of a named limit. It is immutable but for its counts.
type NamedLimit struct {
	Windows []Window
	Shadow  bool    // denies nothing and reports denials
	Counts  *Counts // by Counter
}

// Counts counts decisions of a named limit.
type Counts struct {
	Allowed       atomic.Uint64
	Limited       atomic.Uint64
	ShadowLimited atomic.Uint64 // requests that a Shadow would deny
}

// Counter implements Shared; it returns nil without a request for units.
func (n *NamedLimit) Counter(quantity int64, r *funnel.Result) *atomic.Uint64 {
	switch {
	case quantity <= 0:
		return nil
	case r.Limited:
		return &n.Counts.Limited
	case r.Shadowed:
		return &n.Counts.ShadowLimited
	}
	return &n.Counts.Allowed
}

// fits reports whether all windows, when empty, hold quantity units.
func (n *NamedLimit) fits(quantity int64) bool {
	return !slices.ContainsFunc(n.Windows, func(w Window) bool { return !w.Funnel.Fits(quantity) })
}

// decide charges all windows or none. The result is that of the limited window, or of the one with the least
// left. The next charge drops states of removed windows.
func (n *NamedLimit) decide(s *State, nowNs, quantity int64, unit funnel.Unit, result *funnel.Result) (changed bool) {
	windows := n.Windows[:min(len(n.Windows), MaxWindows)]
	var tats [MaxWindows]int64
	for i := range windows {
		w := &windows[i]
		tatNs := windowTAT(s.Payload, w.PeriodNs, nowNs)
		newTATNs, r := w.Funnel.ThrottleIn(unit, tatNs, nowNs, quantity)
		tats[i] = newTATNs
		changed = changed || newTATNs != tatNs
		if i == 0 || tighter(&r, result) { // by field, see decideSibling
			result.Limited, result.Limit, result.Remaining = r.Limited, r.Limit, r.Remaining
			result.RetryAfter, result.ResetAfter = r.RetryAfter, r.ResetAfter
		}
	}
	if result.Limited && n.Shadow {
		result.Limited, result.Shadowed, result.RetryAfter = false, true, -1
		return false
	}
	if result.Limited || !changed {
		return false
	}
	s.Payload, s.ExpiresNs = s.Payload[:0], nowNs
	for i := range windows {
		if tats[i] > nowNs {
			s.Payload = binary.LittleEndian.AppendUint64(s.Payload, uint64(windows[i].PeriodNs))
			s.Payload = binary.LittleEndian.AppendUint64(s.Payload, uint64(tats[i]))
			s.ExpiresNs = max(s.ExpiresNs, tats[i])
		}
	}
	return true
}

// windowTAT returns a window's TAT, nowNs if it is empty.
func windowTAT(payload []byte, periodNs, nowNs int64) int64 {
	for ; len(payload) >= windowBytes; payload = payload[windowBytes:] {
		if int64(binary.LittleEndian.Uint64(payload)) == periodNs {
			return max(nowNs, int64(binary.LittleEndian.Uint64(payload[8:])))
		}
	}
	return nowNs
}

// tighter reports whether a window is limited longer, else has less left, else resets later. One that never
// allows the request is the tightest.
func tighter(a, b *funnel.Result) bool {
	if a.Limited != b.Limited {
		return a.Limited
	}
	if a.Limited {
		return uint64(a.RetryAfter) > uint64(b.RetryAfter)
	}
	return a.Remaining < b.Remaining || a.Remaining == b.Remaining && a.ResetAfter > b.ResetAfter
}

// OfNamed returns the rule of CL.CHECK.
func OfNamed(n *NamedLimit) Rule { return Rule{Kind: Named, Unit: funnel.WholeSeconds, Shared: n} }

func (r *Rule) named() *NamedLimit {
	n, _ := r.Shared.(*NamedLimit)
	return n
}

// namedLimits is Named. Its limits are defined, not given in a request.
type namedLimits struct{ defaults }

func (namedLimits) row() Row {
	return Row{Name: "cl-limit", Type: "cl-limit", Encoding: "funnels", Command: "cl.check"}
}

func (namedLimits) makesKey(r Rule, quantity int64) bool {
	n := r.named()
	return quantity > 0 && n != nil && n.fits(quantity)
}

func (namedLimits) share(r Rule, share float64) Rule {
	if n := r.named(); n != nil {
		shared := *n
		shared.Windows = make([]Window, len(n.Windows))
		for i, w := range n.Windows {
			shared.Windows[i] = Window{Funnel: w.Funnel.Share(share), PeriodNs: w.PeriodNs}
		}
		r.Shared = &shared
	}
	return r
}

func (namedLimits) intervalNs(r Rule) (ns uint64) {
	n := r.named()
	if n == nil {
		return 0
	}
	for i := range n.Windows {
		if of := leakNs(&n.Windows[i].Funnel); of > 0 && (ns == 0 || of < ns) {
			ns = of
		}
	}
	return ns
}

func (namedLimits) valid(s State) bool {
	n := len(s.Payload) / windowBytes
	if n < 1 || n > MaxWindows || len(s.Payload)%windowBytes != 0 {
		return false
	}
	lastNs := tatAt(s.Payload, 0)
	for at := windowBytes; at < len(s.Payload); at += windowBytes {
		lastNs = max(lastNs, tatAt(s.Payload, at))
	}
	return lastNs == s.ExpiresNs
}

func (namedLimits) shift(payload []byte, byNs int64) {
	for at := 0; at+windowBytes <= len(payload); at += windowBytes {
		binary.LittleEndian.PutUint64(payload[at+8:], uint64(funnel.Shift(tatAt(payload, at), byNs)))
	}
}

func (namedLimits) eachTAT(s State, _ int64, f func(at int, periodNs, tatNs int64)) {
	for at := 0; at+windowBytes <= len(s.Payload); at += windowBytes {
		f(at+8, int64(binary.LittleEndian.Uint64(s.Payload[at:])), tatAt(s.Payload, at))
	}
}

func (k namedLimits) stamp(to *stamping) {
	k.eachTAT(*to.state, to.course.nowNs, func(at int, periodNs, tatNs int64) {
		to.follow(at, tatNs, debtOf(to.course.debts, periodNs).leastNs)
	})
}

func tatAt(payload []byte, at int) int64 { return int64(binary.LittleEndian.Uint64(payload[at+8:])) }
