package limiter

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// MaxWindows is how many windows a named limit may have. There must be no two of one period.
const MaxWindows = 16

const windowBytes = 16 // the period, by which a window is known, and the TAT

// check requests units of all windows, or of none. What is kept of a window that the limit no longer has is let go of with
// the next debit.
func (o *Operation) check(s *State, nowNs int64) (changed bool, err error) {
	if !s.begin(nowNs, Named) {
		return false, ErrWrongType
	}
	windows := o.Windows[:min(len(o.Windows), MaxWindows)]
	var tats [MaxWindows]int64
	o.Result, o.Tightest, o.Count = funnel.Result{}, 0, 0
	for i := range windows {
		w := &windows[i]
		tatNs := windowTAT(s.Payload, w.PeriodNs, nowNs)
		var r funnel.Result
		tats[i], r = w.Funnel.ThrottleIn(o.Unit, tatNs, nowNs, o.Quantity)
		changed = changed || tats[i] != tatNs
		if i == 0 || tighter(&r, &o.Result) {
			o.Result, o.Tightest = r, i
		}
	}
	if o.Result.Limited && o.Shadow {
		o.Result.Limited, o.Result.RetryAfter, o.Count = false, -1, 1
		return false, nil
	}
	if o.Result.Limited || !changed {
		return false, nil
	}
	s.Payload, s.ExpiresNs = s.Payload[:0], nowNs
	for i := range windows {
		if tats[i] > nowNs {
			s.Payload = binary.LittleEndian.AppendUint64(s.Payload, uint64(windows[i].PeriodNs))
			s.Payload = binary.LittleEndian.AppendUint64(s.Payload, uint64(tats[i]))
			s.ExpiresNs = max(s.ExpiresNs, tats[i])
		}
	}
	return true, nil
}

// windowTAT returns the TAT of a window, which is nowNs if it is empty.
func windowTAT(payload []byte, periodNs, nowNs int64) int64 {
	for ; len(payload) >= windowBytes; payload = payload[windowBytes:] {
		if int64(binary.LittleEndian.Uint64(payload)) == periodNs {
			return max(nowNs, int64(binary.LittleEndian.Uint64(payload[8:])))
		}
	}
	return nowNs
}

// tighter reports whether a window is limited for longer than another, or has less left, or the same for longer. One that never
// allows the request is limited for longest.
func tighter(a, b *funnel.Result) bool {
	if a.Limited != b.Limited {
		return a.Limited
	}
	if a.Limited {
		return uint64(a.RetryAfter) > uint64(b.RetryAfter)
	}
	return a.Remaining < b.Remaining || a.Remaining == b.Remaining && a.ResetAfter > b.ResetAfter
}

func validNamed(payload []byte, expiresNs int64) bool {
	n := len(payload) / windowBytes
	if n < 1 || n > MaxWindows || len(payload)%windowBytes != 0 {
		return false
	}
	lastNs := int64(binary.LittleEndian.Uint64(payload[8:]))
	for at := windowBytes; at < len(payload); at += windowBytes {
		lastNs = max(lastNs, int64(binary.LittleEndian.Uint64(payload[at+8:])))
	}
	return lastNs == expiresNs
}
