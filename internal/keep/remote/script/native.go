package remote

import (
	_ "embed"

	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
)

// nativeScript decides requests of one kind on one key, at one time: of fixed windows, or of buckets. It does what packages window
// and bucket do to a value of theirs, and returns the time and that value as it was, from which the results follow by their
// arithmetic. It returns only the time, having changed nothing, if the value is of another kind or has a number too large for a
// double; then a swap decides.
//
// ARGV is the time or nothing, and as two numbers; the kind; and of each run of equal requests: how many, the quantity, the maximum, the period,
// and 1 if what is denied is counted. Times and periods are two numbers of 32 bits, the higher first, as Lua's are exact to 53.
//
//go:embed native.lua
var nativeScript string

// nativeMost is more than any number that a native script is given: it leaves room for sums.
const nativeMost = 1 << 50

// nativeCall returns the call that decides tasks, and nil if only a swap can.
func (o *others) nativeCall(l *line, tasks []*task) *servers.Call {
	if l.apart || tasks[0].request == nil {
		return nil
	}
	kind, nowNs := tasks[0].request.Rule.Kind, tasks[0].nowNs
	if kind != limiter.FixedWindow && kind != limiter.Bucket {
		return nil
	}
	args := append(make([]any, 0, 4+6*4), o.store.timeArg(nowNs))
	if o.store.CallersTime {
		args = append(args, nowNs>>32, nowNs&(1<<32-1), int64(kind))
	} else {
		args = append(args, int64(0), int64(0), int64(kind))
	}
	run := int64(0)
	for i, t := range tasks {
		if t.request == nil || t.request.Rule.Kind != kind || o.store.CallersTime && t.nowNs != nowNs {
			return nil
		}
		run++
		if i+1 < len(tasks) && sameRequest(t, tasks[i+1]) {
			continue
		}
		var ok bool
		if args, ok = appendRun(args, run, t); !ok {
			return nil
		}
		run = 0
	}
	return &servers.Call{Script: o.store.keyScripts.native, Keys: []string{l.name}, Args: args}
}

func sameRequest(a, b *task) bool {
	return b.request != nil && a.request.Quantity == b.request.Quantity && a.request.Rule == b.request.Rule
}

// appendRun appends the arguments of a run. It is false if no native script takes them.
func appendRun(args []any, n int64, t *task) (_ []any, ok bool) {
	r, quantity := &t.request.Rule, t.request.Quantity
	var most, countDenied int64
	var period uint64
	switch r.Kind {
	case limiter.FixedWindow:
		most, period = r.Window.MaxCount(), r.Window.PeriodNs()
		if r.Flags&limiter.CountDenied != 0 {
			countDenied = 1
		}
	case limiter.Bucket:
		most = r.Bucket.Capacity()
	default:
		return args, false
	}
	if most >= nativeMost || quantity >= nativeMost || quantity <= -nativeMost {
		return args, false
	}
	return append(args, n, quantity, most, int64(period>>32), int64(period&(1<<32-1)), countDenied), true
}

// learnNative takes what a native script has returned.
func (o *others) learnNative(l *line, rest []any, k known) {
	if len(rest) == 0 {
		o.inVain(l)
		l.apart, l.known, l.covered = true, known{}, 0
		return
	}
	k.found = foundIn(rest[0])
	l.known = k
	tasks := o.first(l, l.trying)
	changed := o.decideAt(l, tasks, k.serverNs, nil)
	if changed {
		l.known.state = l.next
		l.known.absent = l.next.ExpiresNs <= k.serverNs
		if l.known.value = ""; !l.known.absent {
			l.known.value = valueOf(&l.next)
		}
	}
	o.finish(l, l.trying)
}
