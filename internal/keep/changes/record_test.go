package changes

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
)

// stateOf returns a state of a kind.
func stateOf(t testing.TB, kind limiter.Kind, expiresNs int64) limiter.State {
	if kind == limiter.Funnel {
		return limiter.State{ExpiresNs: expiresNs}
	}
	s, err := limitertest.State(kind, expiresNs, 1+expiresNs%4)
	if err != nil {
		t.Fatal(err)
	}
	s.ExpiresNs = expiresNs
	return s
}

// TestRecordsAreReadBack: what was appended, in its order.
func TestRecordsAreReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	var want []record
	for range 1000 {
		k := store.Key{DB: uint16(rng.IntN(3) * rng.IntN(1<<15)), Name: bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(300))}
		switch r := (record{kind: byte(rng.IntN(4)), key: k}); r.kind {
		case recordFunnel:
			r.state.ExpiresNs = rng.Int64()
			buf, want = appendState(buf, k, &r.state), append(want, r)
		case recordState:
			r.state = stateOf(t, 1+limiter.Kind(rng.IntN(int(limiter.Kinds-1))), 1+rng.Int64N(1<<60))
			buf, want = appendState(buf, k, &r.state), append(want, r)
		case recordGone:
			buf, want = appendGone(buf, k), append(want, record{kind: recordGone, key: k})
		default:
			buf, want = appendFlushed(buf), append(want, record{kind: recordFlushed})
		}
	}
	for i, w := range want {
		r, rest, err := readRecord(buf)
		if err != nil || r.kind != w.kind || !reflect.DeepEqual(r.state, w.state) || r.key.DB != w.key.DB || !bytes.Equal(r.key.Name, w.key.Name) {
			t.Fatalf("record %d: %+v, %v, want %+v", i, r, err, w)
		}
		buf = rest
	}
	if len(buf) != 0 {
		t.Errorf("%d bytes are left", len(buf))
	}
}

// someRecords returns one of each kind, and of each kind of limiter.
func someRecords(t testing.TB) []byte {
	buf := appendGone(appendFlushed(nil), store.Key{Name: []byte("gone")})
	for kind := range limiter.Kinds {
		s := stateOf(t, kind, 1<<60)
		buf = appendState(buf, store.Key{DB: 7 * uint16(kind), Name: []byte("k")}, &s)
	}
	return buf
}

// FuzzRecords: every record read is written identically.
func FuzzRecords(f *testing.F) {
	f.Add(someRecords(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			r, rest, err := readRecord(b)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("nothing was read")
			}
			again := appendFlushed(nil)
			switch r.kind {
			case recordGone:
				again = appendGone(nil, r.key)
			case recordFunnel, recordState:
				again = appendState(nil, r.key, &r.state)
			}
			if got, _, err := readRecord(again); err != nil || !reflect.DeepEqual(got.state, r.state) || got.key.DB != r.key.DB || !bytes.Equal(got.key.Name, r.key.Name) {
				t.Fatalf("%+v is written and read as %+v, %v", r, got, err)
			}
			b = rest
		}
	})
}
