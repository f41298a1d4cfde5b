package rdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/value"
	"cellserver/internal/test/redistest"
)

// TestChecksum compares with crc64.c of Redis.
func TestChecksum(t *testing.T) {
	if got := NewCodec().checksum([]byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("got %x", got)
	}
}

// withFooter returns the payload of a value with the version of Redis 7.0.
func withFooter(value string) []byte { return NewCodec().appendFooter([]byte(value), 0) }

func TestPayloads(t *testing.T) {
	n64 := strings.Repeat("x", 64)
	for _, tt := range []struct {
		in, want string
		err      error
	}{
		{"\x00\x00", "", nil},
		{"\x00\x01a", "a", nil},
		{"\x00\x3f" + n64[1:], n64[1:], nil},
		{"\x00\x40\x40" + n64, n64, nil},
		{"\x00\x40\x01a", "a", nil}, // longer than it must be
		{"\x00\x80\x00\x00\x00\x01a", "a", nil},
		{"\x00\x81\x00\x00\x00\x00\x00\x00\x00\x01a", "a", nil},
		{"\x00\xc0\x7f", "127", nil},
		{"\x00\xc0\x80", "-128", nil},
		{"\x00\xc1\x00\x80", "-32768", nil},
		{"\x00\xc1\x01\x02", "513", nil},
		{"\x00\xc2\x00\x00\x00\x80", "-2147483648", nil},
		{"\x00\xc2\x01\x02\x03\x04", "67305985", nil},
		{"\x00\xc3\x09\x1e\x0111\xe0\x11\x00\x0111", strings.Repeat("1", 30), nil}, // compressed
		{"\x00\xc3\x09\x1d\x0111\xe0\x11\x00\x0111", "", ErrFormat},
		{"\x00\xc3\x09\x1f\x0111\xe0\x11\x00\x0111", "", ErrFormat},
		{"\x00\xc3\x0a\x1e\x0111\xe0\x11\x00\x0111", "", ErrFormat},
		{"\x00\xc3\x03\x04\x01ab\x00", "", ErrFormat},
		{"\x00\xc3\x04\x05\x00a\x20\x01", "", ErrFormat}, // from before the beginning
		{"\x00\xc3\x04\x04\x00a\x20\x00", "aaaa", nil},
		{"\x00\xc3\x01\x80\xff\xff\xff\xff\x00", "", ErrNotState},
		{"\x00\xc3\xc0\x01", "", ErrFormat},
		{"\x12\x01\x02", "", ErrNotState}, // a list
		{"", "", ErrFormat},
		{"\x00", "", ErrFormat},
		{"\x00\x01", "", ErrFormat},
		{"\x00\x01ab", "", ErrFormat},
		{"\x00\x40", "", ErrFormat},
		{"\x00\x80\x00\x00\x00", "", ErrFormat},
		{"\x00\x81\x00\x00\x00\x00\x00\x00\x00", "", ErrFormat},
		{"\x00\x81\xff\xff\xff\xff\xff\xff\xff\xffa", "", ErrFormat},
		{"\x00\x80\xff\xff\xff\xffa", "", ErrFormat},
		{"\x00\x82\x00\x00\x00\x01a", "", ErrFormat},
		{"\x00\xc0", "", ErrFormat},
		{"\x00\xc1\x01\x02\x03", "", ErrFormat},
		{"\x00\xc2\x01", "", ErrFormat},
		{"\x00\xc4\x01", "", ErrFormat},
	} {
		if got, err := NewCodec().readValue(withFooter(tt.in)); string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q: got %q, %v, want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

// TestPayloadFooters: each byte counts, and the version is no later than is known.
func TestPayloadFooters(t *testing.T) {
	k := NewCodec()
	tat := limiter.ValueOf([]byte("1700000030000000000"), limiter.NeverNs)
	whole := k.Append(nil, &tat)
	if got := string(whole); got != "\x00\x131700000030000000000\x0a\x00\x9ctR\xe4\xd9]\x97\xaf" { // of redis-server 7.0.15
		t.Errorf("got %q", got)
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 1
		for _, in := range [][]byte{bad, whole[:i]} {
			if _, err := k.readValue(in); !errors.Is(err, ErrChecksum) {
				t.Errorf("%q: %v", in, err)
			}
		}
	}
	for version, want := range map[uint16]error{0: nil, 6: nil, 11: nil, 12: nil, 14: nil, 15: ErrChecksum, 256: ErrChecksum, 65535: ErrChecksum} {
		b := binary.LittleEndian.AppendUint16([]byte("\x00\x01a"), version)
		b = binary.LittleEndian.AppendUint64(b, k.checksum(b))
		if _, err := k.readValue(b); !errors.Is(err, want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// TestStatesAreReadBack: of every kind, and of any length.
func TestStatesAreReadBack(t *testing.T) {
	k := NewCodec()
	for kind := range limiter.Kinds {
		s, err := limitertest.State(kind, 1_700_000_030_000_000_000, 3)
		if err != nil {
			t.Fatal(err)
		}
		b := k.Append([]byte("in front"), &s)
		if kind == limiter.Value {
			s.ExpiresNs = limiter.NeverNs
		}
		if got, err := k.Read(b[len("in front"):]); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%v: got %+v, %v, want %+v", kind, got, err, s)
		}
	}
	budget, err := limitertest.Budget(10_000, 3600)
	if err != nil {
		t.Fatal(err)
	}
	for _, holds := range []int{1, 5, 4096} {
		s, err := limitertest.Held(budget, 1_700_000_030_000_000_000, holds)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Read(k.Append(nil, &s)); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%d holds in %d bytes: %v", holds, len(s.Payload), err)
		}
	}
	for _, text := range []string{stateMagic, stateMagic + "\x09", stateMagic[:7]} {
		s := limiter.ValueOf([]byte(text), limiter.NeverNs)
		if got, err := k.Read(k.Append(nil, &s)); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
	for _, n := range []int{0, 1, 63, 64, 1<<14 - 1, 1 << 14, maxValueBytes} {
		value := bytes.Repeat([]byte{'x'}, n)
		in := append(appendLength([]byte{typeString}, n), value...)
		if got, err := k.readValue(k.appendFooter(in, 0)); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
}

// TestStringsThatAreNoStates: part of a state is a value or damaged. ReadFunnel takes decimals, too.
func TestStringsThatAreNoStates(t *testing.T) {
	k := NewCodec()
	payload := func(text []byte) []byte { return k.appendFooter(appendString([]byte{typeString}, text), 0) }
	s, err := limitertest.State(limiter.FixedWindow, 1_700_000_030_000_000_000, 3)
	if err != nil {
		t.Fatal(err)
	}
	whole := limiter.AppendState([]byte(stateMagic), &s)
	for i := range whole {
		want, wantFunnel := ErrDamaged, ErrDamaged
		if i < len(stateMagic) {
			want, wantFunnel = nil, ErrNotState
		}
		if got, err := k.Read(payload(whole[:i])); !errors.Is(err, want) {
			t.Errorf("the first %d bytes: %+v, %v", i, got, err)
		}
		if got, err := k.ReadFunnel(payload(whole[:i])); !errors.Is(err, wantFunnel) {
			t.Errorf("the first %d bytes for a funnel: %+v, %v", i, got, err)
		}
	}
	if got, err := k.Read(payload(append(whole, 0))); !errors.Is(err, ErrDamaged) {
		t.Errorf("with a byte more: %+v, %v", got, err)
	}
	for _, text := range []string{"", "hello", "+5", "05", "5", "-5", "1700000030000000000"} {
		want := limiter.ValueOf([]byte(text), limiter.NeverNs)
		if got, err := k.Read(payload([]byte(text))); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
		n, decimal := value.Counter(want.Payload)
		if got, err := k.ReadFunnel(payload([]byte(text))); (err == nil) != decimal || err == nil && !reflect.DeepEqual(got, limiter.State{ExpiresNs: n}) {
			t.Errorf("%q for a funnel: %+v, %v", text, got, err)
		}
	}
}

// someTexts returns texts with repetitions of all sorts.
func someTexts(n int) (texts []string) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range n {
		length := rng.IntN(1 << rng.IntN(17))
		letters, recent, far := 1+rng.IntN(1<<rng.IntN(9)), 1+rng.IntN(300), rng.IntN(4)
		text := make([]byte, 0, length)
		for len(text) < length {
			if len(text) == 0 || rng.IntN(4) < far {
				text = append(text, byte(rng.IntN(letters)))
				continue
			}
			from := rng.IntN(len(text)) // of a repetition, which may overlap its copy
			if rng.IntN(2) == 0 {
				from = max(0, len(text)-1-rng.IntN(20))
			}
			for range min(rng.IntN(recent)+1, length-len(text)) {
				text = append(text, text[from])
				from++
			}
		}
		texts = append(texts, string(text))
	}
	for _, n := range []int64{0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769, 1<<31 - 1, 1 << 31, -1 << 31, -1<<31 - 1, 1<<63 - 1, -1 << 63} {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	for _, n := range []int{20, 21, 22, 63, 64, 264, 265, 266, 8191, 8192, 8193, 8200, 1<<14 - 1, 1 << 14, 64 << 10} {
		texts = append(texts, strings.Repeat("a", n), strings.Repeat("abcdefgh", n/8), "007"+strings.Repeat("0", n))
	}
	return texts
}

// TestValuesAreDumpedAsByRedis: byte by byte, also when they are compressed.
func TestValuesAreDumpedAsByRedis(t *testing.T) {
	k, client := NewCodec(), redistest.Start(t)
	texts := someTexts(1000)
	var compressed int
	for _, text := range texts {
		var dump *redis.StringCmd
		if _, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Set(t.Context(), "k", text, 0)
			dump = p.Dump(t.Context(), "k")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		want := dump.Val()
		s := limiter.ValueOf([]byte(text), limiter.NeverNs)
		got := k.Append(nil, &s)
		if string(got) != want {
			t.Fatalf("%d bytes: got %q, want %q, of %q", len(text), got, want, text)
		}
		if want[1] == 0xc3 {
			compressed++
		}
		if back, err := k.Read([]byte(want)); err != nil || string(limiter.AppendValue(nil, &back)) != text {
			t.Fatalf("%q is read as %+v, %v", want, back, err)
		}
	}
	if compressed < len(texts)/4 {
		t.Errorf("only %d of %d texts were compressed", compressed, len(texts))
	}
}

// FuzzPayload reads any bytes, raw and with a valid footer. Every state is dumped identically.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		"\x00\x131700000030000000000", "\x00\xc0\x07", "\x00\xc1,\x01", "\x00\xc2\x90\xee\xfe\xff", "\x00\x40\x131700000030000000000",
		"\x00\x80\x00\x00\x00\x131700000030000000000", "\x00\xc3\x09\x1e\x0111\xe0\x11\x00\x0111", "\x12\x01\x02", "\x00",
		"\x00\x131700000030000000000\x0a\x00\x9ctR\xe4\xd9]\x97\xaf",
	} {
		f.Add([]byte(seed))
	}
	k := NewCodec()
	for kind := range limiter.Kinds {
		s, err := limitertest.State(kind, 1_700_000_030_000_000_000, 3)
		if err != nil {
			f.Fatal(err)
		}
		b := k.Append(nil, &s)
		f.Add(b[:len(b)-versionBytes-checksumBytes])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 300 { // nothing new to find, and slow to minimize
			return
		}
		_, _ = k.Read(in)
		s, err := k.Read(k.appendFooter(slices.Clone(in), 0))
		if err != nil {
			return
		}
		if again, err := k.Read(k.Append(nil, &s)); !reflect.DeepEqual(again, s) || err != nil {
			t.Fatalf("%+v, dumped and read again: %+v, %v", s, again, err)
		}
	})
}
