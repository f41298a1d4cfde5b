package changes

import (
	"bytes"
	"math"
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
	var want []store.Change
	for range 1000 {
		k := store.Key{DB: uint16(rng.IntN(3) * rng.IntN(1<<15)), Name: bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(300))}
		c := store.Change{Key: k}
		switch rng.IntN(4) {
		case recordFunnel:
			c.State.ExpiresNs = 1 + rng.Int64N(1<<62)
		case recordState:
			c.State = stateOf(t, 1+limiter.Kind(rng.IntN(int(limiter.Kinds-1))), 1+rng.Int64N(1<<60))
		case recordFlushed:
			c = store.Change{Flushed: true}
		}
		buf, want = Append(buf, 0, &c), append(want, c)
	}
	for i, w := range want {
		c, rest, err := readRecord(buf)
		if err != nil || !isSame(&c, &w) {
			t.Fatalf("record %d: %+v, %v, want %+v", i, c, err, w)
		}
		buf = rest
	}
	if len(buf) != 0 {
		t.Errorf("%d bytes are left", len(buf))
	}
}

func isSame(a, b *store.Change) bool {
	return a.Flushed == b.Flushed && a.Key.DB == b.Key.DB && bytes.Equal(a.Key.Name, b.Key.Name) && reflect.DeepEqual(a.State, b.State)
}

// someRecords returns one of each kind, and of each kind of limiter.
func someRecords(t testing.TB) []byte {
	buf := Append(Append(nil, 0, &store.Change{Flushed: true}), 0, &store.Change{Key: store.Key{Name: []byte("gone")}})
	for kind := range limiter.Kinds {
		buf = Append(buf, 0, &store.Change{Key: store.Key{DB: 7 * uint16(kind), Name: []byte("k")}, State: stateOf(t, kind, 1<<60)})
	}
	return buf
}

// FuzzRecords: every record read is written identically.
func FuzzRecords(f *testing.F) {
	f.Add(someRecords(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			c, rest, err := readRecord(b)
			if err != nil || c.State.ExpiresNs == math.MinInt64 {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("nothing was read")
			}
			again := Append(nil, c.State.ExpiresNs-1, &c)
			if got, _, err := readRecord(again); err != nil || !isSame(&got, &c) {
				t.Fatalf("%+v is written and read as %+v, %v", c, got, err)
			}
			b = rest
		}
	})
}
