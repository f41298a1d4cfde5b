package lease

import (
	"math"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

// key is a key's state.
type key struct {
	payload   []byte
	expiresNs int64
}

func (k *key) acquire(nowNs int64, id uint64, places, endNs int64) (r funnel.Result, changed bool) {
	if k.expiresNs <= nowNs {
		k.payload = k.payload[:0]
	}
	k.payload, k.expiresNs, r, changed = Acquire(k.payload, k.expiresNs, nowNs, id, places, endNs, funnel.WholeSeconds)
	return r, changed
}

func (k *key) renew(nowNs int64, id uint64, endNs int64) (found bool) {
	k.payload, k.expiresNs, found, _ = Renew(k.payload, k.expiresNs, nowNs, id, endNs)
	return found
}

func TestPlaces(t *testing.T) {
	var k key
	for i, s := range []struct {
		atSec        int64
		id           uint64
		leaseSec     int64
		limited      bool
		remaining    int64
		retry, reset int64
		places       int64 // another number than 2
	}{
		{atSec: 0, id: 1, leaseSec: 10, remaining: 1, retry: -1, reset: 10},
		{atSec: 1, id: 1, leaseSec: 10, remaining: 1, retry: -1, reset: 10}, // renews
		{atSec: 2, id: 2, leaseSec: 5, remaining: 0, retry: -1, reset: 9},
		{atSec: 3, id: 3, leaseSec: 5, limited: true, retry: 4, reset: 8},
		{atSec: 3, id: 2, leaseSec: 1, remaining: 0, retry: -1, reset: 8}, // shortens
		{atSec: 4, id: 3, leaseSec: 20, remaining: 0, retry: -1, reset: 20},
		{atSec: 5, id: 4, leaseSec: 20, limited: true, retry: 6, reset: 19},
		{atSec: 5, id: 3, leaseSec: 20, remaining: 0, retry: -1, reset: 20, places: 1}, // has a place, though there are fewer now
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
		got, _ := k.acquire(nowNs, s.id, s.places, nowNs+s.leaseSec*sec)
		if want := (funnel.Result{Limited: s.limited, Limit: s.places, Remaining: s.remaining, RetryAfter: s.retry, ResetAfter: s.reset}); got != want {
			t.Errorf("call %d: got %+v, want %+v", i, got, want)
		}
		if !Valid(k.payload, k.expiresNs) {
			t.Errorf("call %d: not valid: %+v", i, k)
		}
	}
}

func TestAgreesWithModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 6))
	var k key
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
			if found := k.renew(nowNs, id, nowNs); found != has { // releases
				t.Fatalf("step %d: released %v, want %v", step, found, has)
			}
			delete(ends, id)
		case 1:
			if found := k.renew(nowNs, id, endNs); found != has {
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
			if r, _ := k.acquire(nowNs, id, places, endNs); r.Limited == allowed || r.Remaining != max(0, places-int64(len(ends))) {
				t.Fatalf("step %d: got %+v, want allowed %v with %d holders", step, r, allowed, len(ends))
			}
		}
		last := nowNs
		for _, endNs := range ends {
			last = max(last, endNs)
		}
		if n := Holders(k.payload, nowNs); n != int64(len(ends)) || max(k.expiresNs, nowNs) != last {
			t.Fatalf("step %d: %d holders until %d, want %d until %d", step, n, k.expiresNs, len(ends), last)
		}
	}
}

// TestNoMoreThanMaxHolders: whatever the number of places is.
func TestNoMoreThanMaxHolders(t *testing.T) {
	var k key
	for id := range uint64(MaxHolders) {
		if r, _ := k.acquire(t0, id, math.MaxInt64, t0+sec); r.Limited {
			t.Fatalf("holder %d: got %+v", id, r)
		}
	}
	if r, changed := k.acquire(t0, MaxHolders, math.MaxInt64, t0+sec); !r.Limited || changed || len(k.payload) != MaxHolders*recordBytes {
		t.Errorf("got %+v, and a payload of %d bytes", r, len(k.payload))
	}
	if r, _ := k.acquire(t0+sec/2, 7, MaxHolders, t0+2*sec); r.Limited {
		t.Errorf("a renewal: got %+v", r)
	}
	if r, _ := k.acquire(t0+sec, MaxHolders, MaxHolders, t0+2*sec); r.Limited || len(k.payload) != 2*recordBytes {
		t.Errorf("got %+v, and a payload of %d bytes", r, len(k.payload))
	}
}
