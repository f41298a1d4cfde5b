package script

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// The native script decides requests of fixed windows or buckets on one key at one time, by the arithmetic of
// packages window and bucket. It returns the time and the previous value, from which the results follow. It
// returns only the time, without a change, for another kind or a number too large for a double; then a swap
// decides.
//
// ARGV is the time or nothing, and as two numbers; the kind; and for each run of equal requests their number,
// the quantity, the maximum, the period, and 1 if denied requests count. Times and periods are two numbers of
// 32 bits, the higher first, as Lua's are exact to 53.

// NativeMost exceeds any number given to a native script, with room for sums.
const NativeMost = 1 << 50

func IsNative(q *store.Request) bool {
	if k := q.Rule.Kind; k != limiter.FixedWindow && k != limiter.Bucket || q.Rule.Flags&limiter.Debit != 0 {
		return false
	}
	most := q.Rule.Packed[0]
	return most < NativeMost && q.Quantity < NativeMost && q.Quantity > -NativeMost
}

// NativeArgs returns the native script's arguments without runs.
func (s *Scripts) NativeArgs(kind limiter.Kind, nowNs int64) []any {
	args := append(make([]any, 0, 4+6*4), s.timeArg(nowNs))
	if s.callersTime {
		return append(args, nowNs>>32, nowNs&(1<<32-1), int64(kind))
	}
	return append(args, int64(0), int64(0), int64(kind))
}

// AppendNativeRun appends n equal requests to the native script's arguments.
func AppendNativeRun(args []any, n int64, q *store.Request) []any {
	r := &q.Rule
	most, period, countDenied := r.Packed[0], uint64(r.Packed[1]), int64(0) // 0 for a bucket
	if r.Flags&limiter.CountDenied != 0 {
		countDenied = 1
	}
	return append(args, n, q.Quantity, most, int64(period>>32), int64(period&(1<<32-1)), countDenied)
}
