package transfer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/store"
)

func entry(db uint16, name string, tatNs int64) Entry {
	return Entry{store.Key{DB: db, Name: []byte(name)}, limiter.State{ExpiresNs: tatNs}}
}

func someEntries(n int) (all []Entry) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		name := make([]byte, rng.IntN(30))
		for i := range name {
			name[i] = byte(rng.IntN(256))
		}
		all = append(all, entry(uint16(rng.IntN(3)*rng.IntN(1<<15)), string(name), rng.Int64()))
	}
	for kind := range limiter.Kinds {
		state, err := limitertest.State(kind, 1<<60, 4)
		if err != nil {
			panic(err)
		}
		all = append(all, Entry{store.Key{DB: uint16(kind), Name: []byte(kind.String())}, state})
	}
	budget, err := limitertest.Budget(10_000, 3600)
	if err != nil {
		panic(err)
	}
	for _, holds := range []int{1, 5, 4096} {
		state, err := limitertest.Held(budget, 1<<60, holds)
		if err != nil {
			panic(err)
		}
		all = append(all, Entry{store.Key{Name: []byte(strconv.Itoa(holds) + " holds")}, state})
	}
	return append(all, entry(1<<16-1, strings.Repeat("long", 100_000), 1), entry(0, "", -1<<63), entry(0, "laoqian:reply", 1<<62))
}

func stream(t *testing.T, entries []Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewStreamWriter(&b, 42)
	for _, e := range entries {
		err = errors.Join(err, w.Write(e))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readAll returns all readable entries, and an error other than io.EOF.
func readAll(r Reader, err error) (all []Entry, _ error) {
	for err == nil {
		var e Entry
		if e, err = r.Read(); err == nil {
			all = append(all, e.clone())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

func readStream(b []byte) ([]Entry, error) {
	r, err := NewStreamReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return readAll(r, nil)
}

func TestStreamIsReadBack(t *testing.T) {
	for _, n := range []int{0, 1, 20_000} {
		want := someEntries(n)
		if n == 0 {
			want = nil
		}
		b := stream(t, want)
		got, err := readStream(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d entries: got %d, %v", len(want), len(got), err)
		}
		if r, err := NewStreamReader(bytes.NewReader(b)); err != nil || r.ClockNs != 42 {
			t.Errorf("the clock is %d, %v", r.ClockNs, err)
		}
	}
}

// TestStreamThatIsNotWhole: every truncation and flipped bit is noticed, and entries returned before it are
// right.
func TestStreamThatIsNotWhole(t *testing.T) {
	want := []Entry{entry(0, "a", 1), entry(7, "b", 2)}
	b := stream(t, want)
	for n := range b {
		got, err := readStream(b[:n])
		if !errors.Is(err, ErrDamaged) && (n >= len(streamMagic) || !errors.Is(err, ErrNoDump)) {
			t.Errorf("the first %d of %d bytes: %v", n, len(b), err)
		}
		if len(got) > 0 && !slices.EqualFunc(got, want[:len(got)], func(a, b Entry) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("the first %d of %d bytes tell %v", n, len(b), got)
		}
	}
	for bit := range 8 * len(b) {
		changed := bytes.Clone(b)
		changed[bit/8] ^= 1 << (bit % 8)
		if _, err := readStream(changed); !errors.Is(err, ErrDamaged) && (bit >= 8*len(streamMagic) || !errors.Is(err, ErrNoDump)) {
			t.Errorf("bit %d changed: %v", bit, err)
		}
	}
	if _, err := readStream(append(b, 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte behind it: %v", err)
	}
}

// TestStreamOfOtherBlocks: missing and reordered blocks are noticed although their own sums are right.
func TestStreamOfOtherBlocks(t *testing.T) {
	b := stream(t, someEntries(20_000))
	at := headerBytes + sumBytes
	var blocks [][]byte
	for at < len(b) {
		n := blockHeaderBytes + int(binary.LittleEndian.Uint32(b[at+4:])) + sumBytes
		blocks = append(blocks, b[at:at+n])
		at += n
	}
	if len(blocks) < 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	header := b[:headerBytes+sumBytes]
	for name, order := range map[string][]int{"one is missing": {1}, "swapped": {1, 0}, "twice": {0, 0, 1}, "none": {}} {
		changed := bytes.Clone(header)
		for _, i := range order {
			changed = append(changed, blocks[i]...)
		}
		changed = append(changed, blocks[len(blocks)-1]...)
		if _, err := readStream(changed); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sealed returns a stream of parts with correct sums.
func sealed(parts ...string) (b []byte) {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli(), []byte(p))
		b = binary.LittleEndian.AppendUint32(append(b, p...), sum)
	}
	return b
}

func TestStreamsOfOthers(t *testing.T) {
	const header = "CELLDUMP\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	const newHeader = "CELLDUMP\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	const end = "END\n\x08\x00\x00\x00"
	for name, tt := range map[string]struct {
		stream []byte
		want   error
	}{
		"empty":             {sealed(header, end+"\x00\x00\x00\x00\x00\x00\x00\x00"), nil},
		"a newer format":    {sealed("CELLDUMP\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrNewer},
		"another count":     {sealed(header, end+"\x01\x00\x00\x00\x00\x00\x00\x00"), ErrDamaged},
		"a short end":       {sealed(header, "END\n\x00\x00\x00\x00"), ErrDamaged},
		"a database beyond": {sealed(header, "KEYS\x0c\x00\x00\x00\x80\x80\x04\x0012345678"), ErrDamaged},
		"half a state":      {sealed(newHeader, "KEYS\x0c\x00\x00\x00\x00\x001\x00\x00\x00\x00\x00\x00\x00\x00"), ErrDamaged},
		"no such kind":      {sealed(newHeader, "KEYS\x0c\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00"), ErrDamaged},
		"half a record":     {sealed(header, "KEYS\x03\x00\x00\x00\x00\x011"), ErrDamaged},
		"a long block":      {[]byte(string(sealed(header)) + "KEYS\xff\xff\xff\xff"), ErrDamaged},
		"a CSV":             {[]byte("db,key,tat_ns\n"), ErrNoDump},
		"nothing":           {nil, ErrNoDump},
	} {
		if _, err := readStream(tt.stream); !errors.Is(err, tt.want) || err != nil && tt.want == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStreamOfFormat1 reads what versions with funnels only have written.
func TestStreamOfFormat1(t *testing.T) {
	got, err := readStream(sealed("CELLDUMP\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"KEYS\x16\x00\x00\x00\x00\x01k\x01\x00\x00\x00\x00\x00\x00\x00\x07\x01l\xff\x00\x00\x00\x00\x00\x00\x00",
		"END\n\x08\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"))
	if want := []Entry{entry(0, "k", 1), entry(7, "l", 255)}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// FuzzStream: an entry survives being written and read again.
func FuzzStream(f *testing.F) {
	f.Add(sealed("CELLDUMP\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "KEYS\x0b\x00\x00\x00\x00\x01k12345678", "END\n\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("CELLDUMP"))
	f.Add(sealed("CELLDUMP\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "KEYS\x0d\x00\x00\x00\x00\x01k\x0012345678\x00", "END\n\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// The fuzzer chooses the bytes behind correct sums.
		for format := range uint32(streamFormat) {
			if e, rest, ok := readRecord(b, format+1); ok && (len(rest) >= len(b) || len(e.Key.Name) > len(b)) {
				t.Fatal("nothing was read")
			}
		}
		got, err := readStream(b)
		if err != nil {
			return
		}
		if again, err := readStream(stream(t, got)); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%d entries are read as %d, %v", len(got), len(again), err)
		}
	})
}
