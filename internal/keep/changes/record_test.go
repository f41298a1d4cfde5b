package changes

import (
	"bytes"
	"encoding/binary"
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
		switch rng.IntN(5) {
		case recordFunnel:
			c.State.ExpiresNs = 1 + rng.Int64N(1<<62)
		case recordState:
			c.State = stateOf(t, 1+limiter.Kind(rng.IntN(int(limiter.Kinds-1))), 1+rng.Int64N(1<<60))
		case recordFlushed:
			c = store.Change{Flushed: true}
		case recordSpent:
			at := store.SpentAt{Limit: string(k.Name), Day: int32(rng.Uint32())}
			c = store.Change{Spent: &store.Spent{SpentAt: at, Units: int64(rng.Uint64()) >> rng.IntN(64)}}
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
	return a.Flushed == b.Flushed && reflect.DeepEqual(a.Spent, b.Spent) && a.Key.DB == b.Key.DB && bytes.Equal(a.Key.Name, b.Key.Name) && reflect.DeepEqual(a.State, b.State)
}

// someRecords returns one of each kind, and of each kind of limiter.
func someRecords(t testing.TB) []byte {
	buf := Append(Append(nil, 0, &store.Change{Flushed: true}), 0, &store.Change{Key: store.Key{Name: []byte("gone")}})
	for kind := range limiter.Kinds {
		buf = Append(buf, 0, &store.Change{Key: store.Key{DB: 7 * uint16(kind), Name: []byte("k")}, State: stateOf(t, kind, 1<<60)})
	}
	return Append(buf, 0, &store.Change{Spent: &store.Spent{SpentAt: store.SpentAt{Limit: "k", Day: -3}, Units: math.MinInt64}})
}

// TestRecordsOfSpending: a day beyond 32 bits, a number that does not end and a database are no records.
func TestRecordsOfSpending(t *testing.T) {
	good := Append(nil, 0, &store.Change{Spent: &store.Spent{SpentAt: store.SpentAt{Limit: "org", Day: math.MaxInt32}, Units: math.MaxInt64}})
	if c, rest, err := readRecord(good); err != nil || len(rest) > 0 || c.Spent == nil || c.Spent.Day != math.MaxInt32 {
		t.Fatalf("%+v, %v", c, err)
	}
	for n := 1; n < len(good); n++ {
		if _, _, err := readRecord(good[:n]); err == nil {
			t.Errorf("%d of %d bytes are a record", n, len(good))
		}
	}
	head := good[:len("\x04\x03org")]
	for _, day := range []int64{math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64} {
		if _, _, err := readRecord(binary.AppendVarint(binary.AppendVarint(head[:len(head):len(head)], day), 1)); err == nil {
			t.Errorf("day %d is read", day)
		}
	}
	inDB := append([]byte{good[0] | flagOtherDB, 7}, good[1:]...)
	if _, _, err := readRecord(inDB); err == nil {
		t.Error("one of a database is read")
	}
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
