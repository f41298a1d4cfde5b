package reserve

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"cellserver/internal/funnel"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

// settleOneByOne is Settle by its definition: one charge after another.
func (l *Ledger) settleOneByOne(nowNs int64) {
	for l.expired(nowNs) {
		next := 0
		for i := range l.Len() {
			if l.at(i).expiresNs() < l.at(next).expiresNs() {
				next = i
			}
		}
		r := l.at(next)
		atNs := r.expiresNs()
		debitNs := r.intervalNs() * uint64(r.units())
		for i := next; i < l.Len(); i++ {
			leastNs := l.at(i).least()
			passesNs := min(debitNs, leastNs)
			l.at(i).setLeast(leastNs - passesNs)
			debitNs = passesNs
		}
		l.tatNs = funnel.GiveBack(l.tatNs, atNs, debitNs)
		var placeOf [MaxOpen]uint16
		placeOf[next] = 1
		l.remove(&placeOf)
	}
}

func randomLedger(rng *rand.Rand, n int) Ledger {
	l := New(nil, t0)
	nowNs := t0
	for id := range n {
		nowNs += rng.Int64N(sec)
		units, intervalNs := 1+rng.Int64N(10), uint64(1+rng.Int64N(sec/5))
		if rng.IntN(20) == 0 {
			units *= 50
		}
		tatNs := funnel.After(max(nowNs, l.tatNs), uint64(units)*intervalNs)
		l.Reserve(nowNs, tatNs, uint64(id), rng.Int64N(20*sec), units, intervalNs)
	}
	return l
}

func TestSettleAtOnceAsOneByOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		l := randomLedger(rng, 1+rng.IntN(40))
		other := l
		other.b = bytes.Clone(l.b)
		for nowNs := t0; l.Len() > 0; nowNs += rng.Int64N(10 * sec) {
			l.Settle(nowNs)
			other.settleOneByOne(nowNs)
			if got, _ := l.Close(); l.tatNs != other.tatNs || l.Len() != other.Len() {
				t.Fatalf("seed %d: got TAT %d and %d open, want %d and %d", seed, l.tatNs, l.Len(), other.tatNs, other.Len())
			} else if want, _ := other.Close(); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: got %v, want %v", seed, got, want)
			}
		}
	}
}

// TestAllExpireAtOnce settles MaxOpen reservations; nothing stays debited.
func TestAllExpireAtOnce(t *testing.T) {
	l := New(nil, t0)
	for id := range uint64(MaxOpen) {
		l.Reserve(t0, funnel.After(l.tatNs, 3), id, sec-int64(id)%7, 3, 1)
	}
	payload, expiresNs := l.Close()
	if len(payload) != headerBytes+MaxOpen*recordBytes || !Valid(payload, expiresNs) {
		t.Fatalf("not valid: %d bytes", len(payload))
	}
	if !l.Settle(t0+sec) || l.Len() != 0 || l.tatNs > t0+sec {
		t.Errorf("%d are open, and the TAT is %d", l.Len(), l.tatNs)
	}
}

func TestOpenRefusesDamaged(t *testing.T) {
	l := randomLedger(rand.New(rand.NewPCG(1, 9)), 3)
	payload, expiresNs := l.Close()
	if !Valid(payload, expiresNs) || Valid(payload, expiresNs+1) {
		t.Error("another expiry is valid, or its own is not")
	}
	for n := range len(payload) {
		whole := n > headerBytes && (n-headerBytes)%recordBytes == 0
		if _, ok := Open(payload[:n]); ok != whole {
			t.Errorf("%d of %d bytes: got %v", n, len(payload), ok)
		}
	}
	for at := range len(payload) / 8 { // sets each field to an impossible value
		damaged := bytes.Clone(payload)
		binary.LittleEndian.PutUint64(damaged[at*8:], 1<<64-1)
		if isID := at >= 3 && (at-3)%5 == 0; Valid(damaged, expiresNs) != isID && at > 0 {
			t.Errorf("field %d of -1: valid %v, want %v", at, !isID, isID)
		}
	}
}

// FuzzLedger: nothing panics, and settling a valid payload at once equals settling one by one.
func FuzzLedger(f *testing.F) {
	for n := range 4 {
		l := randomLedger(rand.New(rand.NewPCG(uint64(n), 10)), n+1)
		payload, expiresNs := l.Close()
		f.Add(payload, expiresNs, t0+10*sec, uint64(1), int64(2), t0+20*sec)
		f.Add(payload[:len(payload)-1], expiresNs, t0, uint64(0), int64(1<<62), t0+sec)
	}
	f.Fuzz(func(t *testing.T, payload []byte, expiresNs, nowNs int64, id uint64, actual, tatNs int64) {
		l, ok := Open(payload)
		if !ok {
			return
		}
		valid := Valid(payload, expiresNs)
		other := l
		other.b = bytes.Clone(l.b)
		if l.Settle(nowNs); valid {
			if other.settleOneByOne(nowNs); l.tatNs != other.tatNs {
				t.Fatalf("got TAT %d, want %d", l.tatNs, other.tatNs)
			}
		}
		l.Commit(nowNs, id, actual)
		l.SetTAT(nowNs, tatNs)
		if l.Len() < MaxOpen {
			l.Reserve(nowNs, funnel.After(tatNs, 1), id, actual, 1, 1)
		}
		if payload, expiresNs := l.Close(); valid && l.Len() > 0 && !Valid(payload, expiresNs) {
			t.Fatal("the payload became invalid")
		}
	})
}
