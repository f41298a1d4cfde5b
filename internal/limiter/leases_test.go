package limiter

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
)

// places is the state of a key of Concurrency.
type places struct{ State }

func (p *places) acquire(t *testing.T, nowNs int64, id uint64, most, endNs int64) (r funnel.Result, changed bool) {
	t.Helper()
	o := Operation{Verb: Acquire, Unit: funnel.WholeSeconds, ID: id, Max: most, TTLNs: endNs - nowNs}
	changed, err := o.Do(&p.State, nowNs)
	if err != nil {
		t.Fatal(err)
	}
	return o.Result, changed
}

func (p *places) renew(t *testing.T, nowNs int64, id uint64, endNs int64) (found bool) {
	t.Helper()
	o := Operation{Verb: Renew, ID: id, TTLNs: endNs - nowNs}
	mustDo(t, &p.State, nowNs, &o)
	return o.Count == 1
}

func TestPlaces(t *testing.T) {
	var k places
	for i, s := range []struct {
		atSec        int64
		id           uint64
		leaseSec     int64
		limited      bool
		remaining    int64
		retry, reset int64
		places       int64 // if not 2; -1 for none
	}{
		{atSec: 0, id: 1, leaseSec: 10, remaining: 1, retry: -1, reset: 10},
		{atSec: 1, id: 1, leaseSec: 10, remaining: 1, retry: -1, reset: 10}, // renews
		{atSec: 2, id: 2, leaseSec: 5, remaining: 0, retry: -1, reset: 9},
		{atSec: 3, id: 3, leaseSec: 5, limited: true, retry: 4, reset: 8},
		{atSec: 3, id: 2, leaseSec: 1, remaining: 0, retry: -1, reset: 8}, // shortens
		{atSec: 4, id: 3, leaseSec: 20, remaining: 0, retry: -1, reset: 20},
		{atSec: 5, id: 4, leaseSec: 20, limited: true, retry: 6, reset: 19},
		{atSec: 5, id: 3, leaseSec: 20, remaining: 0, retry: -1, reset: 20, places: 1}, // keeps its place beyond the new number
		{atSec: 5, id: 4, leaseSec: 20, limited: true, retry: -1, reset: 20, places: -1},
		{atSec: 25, id: 4, leaseSec: 1, remaining: 1, retry: -1, reset: 1},
	} {
		switch s.places {
		case 0:
			s.places = 2
		case -1:
			s.places = 0
		}
		nowNs := t0 + s.atSec*sec
		got, _ := k.acquire(t, nowNs, s.id, s.places, nowNs+s.leaseSec*sec)
		if want := (funnel.Result{Limited: s.limited, Limit: s.places, Remaining: s.remaining, RetryAfter: s.retry, ResetAfter: s.reset}); got != want {
			t.Errorf("call %d: got %+v, want %+v", i, got, want)
		}
		if Valid(&k.State) != nil {
			t.Errorf("call %d: not valid: %+v", i, k)
		}
	}
}

func TestPlacesAgreeWithModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	var k places
	ends := map[uint64]int64{}
	nowNs := t0
	for step := range 20_000 {
		nowNs += rng.Int64N(sec)
		for id, endNs := range ends {
			if endNs <= nowNs {
				delete(ends, id)
			}
		}
		id, endNs := rng.Uint64N(12), nowNs+1+rng.Int64N(20*sec)
		_, has := ends[id]
		switch rng.IntN(4) {
		case 0:
			if found := k.renew(t, nowNs, id, nowNs); found != has { // releases
				t.Fatalf("step %d: released %v, want %v", step, found, has)
			}
			delete(ends, id)
		case 1:
			if found := k.renew(t, nowNs, id, endNs); found != has {
				t.Fatalf("step %d: renewed %v, want %v", step, found, has)
			}
			if has {
				ends[id] = endNs
			}
		default:
			places := 1 + rng.Int64N(8)
			allowed := has || int64(len(ends)) < places
			if allowed {
				ends[id] = endNs
			}
			if r, _ := k.acquire(t, nowNs, id, places, endNs); r.Limited == allowed || r.Remaining != max(0, places-int64(len(ends))) {
				t.Fatalf("step %d: got %+v, want allowed %v with %d holders", step, r, allowed, len(ends))
			}
		}
		last := nowNs
		for _, endNs := range ends {
			last = max(last, endNs)
		}
		o := Operation{Verb: Holders}
		if mustDo(t, &k.State, nowNs, &o); o.Count != int64(len(ends)) || max(k.ExpiresNs, nowNs) != last {
			t.Fatalf("step %d: %d holders until %d, want %d until %d", step, o.Count, k.ExpiresNs, len(ends), last)
		}
	}
}

// TestNoMoreThanMaxHolders, for any number of places.
func TestNoMoreThanMaxHolders(t *testing.T) {
	var k places
	for id := range uint64(MaxHolders - 1) {
		k.Payload = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(k.Payload, id), uint64(t0+sec))
	}
	k.Kind, k.ExpiresNs = Concurrency, t0+sec
	if r, _ := k.acquire(t, t0, MaxHolders-1, math.MaxInt64, t0+sec); r.Limited {
		t.Fatalf("the last holder: got %+v", r)
	}
	if r, changed := k.acquire(t, t0, MaxHolders, math.MaxInt64, t0+sec); !r.Limited || changed || len(k.Payload) != MaxHolders*leaseBytes {
		t.Errorf("got %+v, and a payload of %d bytes", r, len(k.Payload))
	}
	if r, _ := k.acquire(t, t0+sec/2, 7, MaxHolders, t0+2*sec); r.Limited {
		t.Errorf("a renewal: got %+v", r)
	}
	if r, _ := k.acquire(t, t0+sec, MaxHolders, MaxHolders, t0+2*sec); r.Limited || len(k.Payload) != 2*leaseBytes {
		t.Errorf("got %+v, and a payload of %d bytes", r, len(k.Payload))
	}
}

// TestDamagedLeases: damaged payloads are invalid, whatever the expiry.
func TestDamagedLeases(t *testing.T) {
	for _, size := range []int{0, 1, leaseBytes - 1, leaseBytes + 1, (MaxHolders + 1) * leaseBytes} {
		for _, expiresNs := range []int64{math.MinInt64, 0, t0, NeverNs} {
			if s := (State{Kind: Concurrency, ExpiresNs: expiresNs, Payload: make([]byte, size)}); Valid(&s) == nil {
				t.Errorf("%d bytes that expire at %d are valid", size, expiresNs)
			}
		}
	}
}
