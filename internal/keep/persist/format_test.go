package persist

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestFramesAreReadBack: frames are read in order, and not with a changed bit or a missing end.
func TestFramesAreReadBack(t *testing.T) {
	var buf []byte
	want := []frame{{1, 2, 3}, {7, 1 << 60, -1}}
	payloads := [][]byte{nil, []byte("payload")}
	for i, f := range want {
		at := len(buf)
		buf = append(beginFrame(buf), payloads[i]...)
		endFrame(buf, at, f)
	}
	rest := buf
	for i := range want {
		f, payload, behind, err := readFrame(rest)
		if err != nil || f != want[i] || !bytes.Equal(payload, payloads[i]) {
			t.Fatalf("frame %d: %+v %q, %v", i, f, payload, err)
		}
		rest = behind
	}
	if len(rest) != 0 {
		t.Fatalf("%d bytes are left", len(rest))
	}
	second := buf[frameHeaderBytes:]
	for n := range second {
		if _, _, _, err := readFrame(second[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are a frame", n, len(second))
		}
	}
	for bit := range 8 * len(second) {
		flipped := bytes.Clone(second)
		flipped[bit/8] ^= 1 << (bit % 8)
		if f, _, _, err := readFrame(flipped); err == nil {
			t.Fatalf("with bit %d changed it is read as %+v", bit, f)
		}
	}
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
			r.state = stateOf([]byte{'1' + byte(rng.IntN(int(limiter.Kinds-1)))}, 1+rng.Int64N(1<<62))
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
func someRecords() []byte {
	buf := appendGone(appendFlushed(nil), store.Key{Name: []byte("gone")})
	for kind := range limiter.Kinds {
		s := stateOf([]byte{'0' + byte(kind)}, 1<<60)
		buf = appendState(buf, store.Key{DB: 7 * uint16(kind), Name: []byte("k")}, &s)
	}
	return buf
}

// FuzzPayload: every record read is written identically.
func FuzzPayload(f *testing.F) {
	f.Add(someRecords())
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, _, err := readFrame(b); err == nil && len(b) < frameHeaderBytes {
			t.Fatal("a frame of less than a header")
		}
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
