package script

import (
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// The native script decides requests of one kind on one key, at one time: of fixed windows, or of buckets. It
// does what packages window and bucket do to a value of theirs, and returns the time and that value as it
// was, from which the results follow by their arithmetic. It returns only the time, having changed nothing,
// if the value is of another kind or has a number too large for a double; then a swap decides.
//
// ARGV is the time or nothing, and as two numbers; the kind; and of each run of equal requests: how many, the
// quantity, the maximum, the period, and 1 if what is denied is counted. Times and periods are two numbers of
// 32 bits, the higher first, as Lua's are exact to 53.

// NativeMost is more than any number that a native script is given: it leaves room for sums.
const NativeMost = 1 << 50

// IsNative reports whether the native script can decide a request.
func IsNative(q *store.Request) bool {
	if k := q.Rule.Kind; k != limiter.FixedWindow && k != limiter.Bucket {
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

// AppendNativeRun appends so many of a request to the native script's arguments.
func AppendNativeRun(args []any, n int64, q *store.Request) []any {
	r := &q.Rule
	most, period, countDenied := r.Packed[0], uint64(r.Packed[1]), int64(0) // a bucket has no period
	if r.Flags&limiter.CountDenied != 0 {
		countDenied = 1
	}
	return append(args, n, q.Quantity, most, int64(period>>32), int64(period&(1<<32-1)), countDenied)
}
