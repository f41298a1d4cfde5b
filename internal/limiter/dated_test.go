package limiter

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/reserve"
)

// TestDatedReservationsOfAMicrosecond: as many reservations as a key may have, all of which end at once, have
// different IDs, also where the date has ended.
func TestDatedReservationsOfAMicrosecond(t *testing.T) {
	t.Parallel()
	l := mustFunnel(t, 10_000, 1000, 1)
	for _, nowNs := range []int64{t0, time.Date(2150, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()} {
		rng, s := rand.New(rand.NewPCG(1, 13)), State{}
		ids := map[uint64]bool{}
		for i := range reserve.MaxOpen {
			lateNs := int64(i % 500)
			o := Operation{Verb: Reserve, Funnel: l, Quantity: 1, ID: rng.Uint64N(MaxUndatedID + 1), Dated: true, TTLNs: sec - 2*lateNs}
			mustDo(t, &s, nowNs+lateNs, &o)
			early := nowNs == t0 && reserve.Due(o.ID, nowNs+sec-1)
			if o.Result.Limited || ids[o.ID] || early {
				t.Fatalf("reservation %d: %d with %+v", i, o.ID, o.Result)
			}
			if ids[o.ID] = true; !reserve.Due(o.ID, nowNs+sec) || reserve.DatedID(nowNs+sec, o.ID) != o.ID {
				t.Fatalf("reservation %d: %d is of another end", i, o.ID)
			}
		}
		one := Operation{Verb: Reserve, Funnel: l, Quantity: 1, Dated: true, TTLNs: sec}
		if _, err := one.Do(&s, nowNs+1000); !errors.Is(err, ErrTooManyOpen) {
			t.Errorf("one more: %v", err)
		}
		for id := range ids {
			o := Operation{Verb: Commit, Funnel: l, ID: id}
			if mustDo(t, &s, nowNs+1000, &o); o.Count != 1 {
				t.Fatalf("%d is not found", id)
			}
		}
		if s.Kind != Funnel || s.ExpiresNs > nowNs+1000 {
			t.Errorf("all committed with 0 units: %+v", s)
		}
	}
}

// TestDatedReservationsKeepOrder: a later end has a greater ID, and commits after it debit.
func TestDatedReservationsKeepOrder(t *testing.T) {
	l := mustFunnel(t, 10, 1, 1)
	var s State
	before := uint64(0)
	for i := range int64(5) {
		o := Operation{Verb: Reserve, Funnel: l, Quantity: 1, ID: uint64(MaxUndatedID - i), Dated: true, TTLNs: sec + i*1000}
		if mustDo(t, &s, t0, &o); o.ID <= before {
			t.Errorf("reservation %d: %d is not after %d", i, o.ID, before)
		}
		before = o.ID
		again := o // on another state, where a store repeats it
		if mustDo(t, &State{}, t0+1, &again); again.ID != o.ID {
			t.Errorf("repeated, %d is %d", o.ID, again.ID)
		}
	}
	lastNs := t0 + sec + 4000
	for _, tt := range []struct {
		nowNs       int64
		late        bool
		id          uint64
		count, left int64
		of          funnel.Result
	}{
		{lastNs, false, before, 0, 0, funnel.Result{}},
		{lastNs, true, before + 1<<12, 0, 0, funnel.Result{}}, // ends later
		{lastNs, true, MaxUndatedID, 0, 0, funnel.Result{}},
		{lastNs, true, before, 2, 3, funnel.Result{Limit: 10, Remaining: 7, RetryAfter: -1, ResetAfter: 3}},
		{lastNs, true, before, 2, 6, funnel.Result{Limit: 10, Remaining: 4, RetryAfter: -1, ResetAfter: 6}}, // nothing tells it from the first
	} {
		o := Operation{Verb: Commit, Funnel: l, ID: tt.id, Quantity: 3, Late: tt.late}
		mustDo(t, &s, tt.nowNs, &o)
		if left := (mustTAT(t, &s, tt.nowNs) - tt.nowNs) / sec; o.Count != tt.count || left != tt.left || o.Result != tt.of {
			t.Errorf("commit of %d: count %d, %d s left with %+v; want %+v", tt.id, o.Count, left, o.Result, tt)
		}
	}
}
