package shadow

import (
	"math"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// call decides a call as the source does.
func (f *follower) call(name string) {
	args := f.line.Args
	q, err := f.calls.Request(name, &f.line)
	switch {
	case err != nil && len(args) > 1:
		q.Key = store.Key{DB: f.line.DB, Name: args[1]}
	case err != nil:
		return
	case q.Rule.Kind != limiter.Funnel || q.Rule.Flags != 0: // redis-cell has neither debits nor ATMOST
		f.count(&f.summary.OtherKinds)
		f.keys.touch(f.line.DB, args)
		return
	}
	k := f.keys.key(q.Key.DB, q.Key.Name, f.line.AtNs)
	if k == nil {
		f.count(&f.summary.Calls)
		f.count(&f.summary.Missed)
		return
	}
	if f.isEnding && !k.waiting {
		return
	}
	k.calls++
	k.called(args)
	k.problem = err
	if k.debits, k.freshNs, k.verdict = false, noTAT, (verdict{}); err == nil {
		f.request(k, &q)
	}
	f.tally(k)
	if f.keys.wait(k) {
		f.queue = append(f.queue, k)
	}
}

func (f *follower) request(k *key, q *store.Request) {
	at := around(f.line.AtNs, int64(f.options.Tolerance))
	l := q.Rule.Funnel
	if k.debits = q.Quantity > 0; k.debits && k.tracked && k.calls == 1 && k.seenNs <= at.from && l.Fits(q.Quantity) {
		k.freshNs, _ = l.Throttle(noTAT, f.line.AtNs, q.Quantity)
	}
	k.tats, k.verdict = k.tats.request(l, at, q.Quantity)
}

func (f *follower) tally(k *key) {
	s := &f.summary
	s.Calls++
	switch v := k.verdict; {
	case k.problem != nil:
		s.Refused++
	case v.allowed && v.limited:
		s.Either++
	case v.allowed:
		s.Allowed++
	default:
		s.Limited++
	}
}

// compare compares the source's state with the expected one.
func (f *follower) compare(k *key, r reply) error {
	f.summary.Reads++
	if r.err != nil && !strings.HasPrefix(r.err.Error(), "WRONGTYPE") {
		return r.err
	}
	tatNs, isTAT := r.tat()
	if !isTAT {
		f.summary.Unread++
		k.calls = 0
		k.forget()
		return nil
	}
	switch {
	case !k.tracked:
		f.summary.Unknown += int64(k.calls)
	case k.calls == 1:
		f.summary.Single++
		fallthrough
	default:
		f.summary.Compared += int64(k.calls)
	}
	at := around(f.line.AtNs, int64(f.options.Tolerance))
	if !k.tats.has(tatNs, at) {
		f.summary.Different++
		f.options.Report(f.difference(k, tatNs))
	} else if k.calls == 1 && k.freshNs != noTAT && tatNs != noTAT {
		f.measure(tatNs - k.freshNs)
	}
	k.noteTAT(tatNs)
	return nil
}

// tat parses a TAT of redis-cell, noTAT for no key. It returns false for anything else.
func (r reply) tat() (tatNs int64, ok bool) {
	if r.err != nil {
		return 0, false
	}
	if !r.found {
		return noTAT, true
	}
	tatNs, err := strconv.ParseInt(r.text, 10, 64)
	return tatNs, err == nil
}

// measure records the source's clock offset from MONITOR's time.
func (f *follower) measure(ns int64) {
	if offset := time.Duration(ns); f.summary.ClockReads == 0 {
		f.summary.ClockLeast, f.summary.ClockMost = offset, offset
	} else {
		f.summary.ClockLeast, f.summary.ClockMost = min(f.summary.ClockLeast, offset), max(f.summary.ClockMost, offset)
	}
	f.summary.ClockReads++
}

func (f *follower) difference(k *key, tatNs int64) Difference {
	d := Difference{AtNs: f.line.AtNs, DB: k.db, Key: k.name, Call: k.last, Calls: k.calls, SeenNs: tatNs, Absent: tatNs == noTAT}
	for _, s := range k.tats {
		d.Expected = append(d.Expected, Range{s.lo, s.hi})
	}
	if k.problem != nil {
		d.Error = k.problem.Error()
	}
	if !k.tracked || k.calls != 1 || !k.debits {
		return d
	}
	d.There = "allowed"
	if tatNs == k.seenNs {
		d.There = "limited"
	}
	switch v := k.verdict; {
	case !v.limited:
		d.Here = "allowed"
	case !v.allowed:
		d.Here = "limited"
	}
	return d
}

// ahead formats how much later a TAT is than a time.
func ahead(tatNs, atNs int64) string {
	switch {
	case tatNs == math.MaxInt64:
		return "any"
	case tatNs <= atNs:
		return "empty"
	}
	return "empty in " + time.Duration(funnel.Since(atNs, tatNs)).String()
}

// String returns the difference on one line.
func (d *Difference) String() string {
	expected := make([]string, len(d.Expected))
	for i, r := range d.Expected {
		expected[i] = ahead(r.FromNs, d.AtNs)
		if to := ahead(r.ToNs, d.AtNs); to != expected[i] {
			expected[i] += " to " + strings.TrimPrefix(to, "empty in ")
		}
	}
	seen := ahead(d.SeenNs, d.AtNs)
	if d.Absent {
		seen = "no key"
	}
	line := time.Unix(0, d.AtNs).UTC().Format("2006-01-02T15:04:05.000000Z") + " db " + strconv.Itoa(int(d.DB)) + " " + d.Call
	if d.Calls > 1 {
		line += " (the last of " + strconv.Itoa(d.Calls) + " calls)"
	}
	line += ": here " + strings.Join(expected, ", or ") + "; there " + seen
	if d.Error != "" {
		line += "; here it is an error: " + d.Error
	}
	if d.Here != "" {
		line += ": " + d.Here + " here, " + d.There + " there"
	}
	return line
}
