package keys

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestChecksum is that of crc64.c of Redis.
func TestChecksum(t *testing.T) {
	if got := newCodec().checksum([]byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("got %x", got)
	}
}

// withFooter returns the payload of a value with the version of Redis 7.0.
func withFooter(value string) []byte { return newCodec().appendFooter([]byte(value)) }

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
		{"\x00\xc3\x09\x1e\x0111\xe0\x11\x00\x0111", "", errNotTAT}, // compressed
		{"\x12\x01\x02", "", errNotTAT},                             // a list
		{"", "", errFormat},
		{"\x00", "", errFormat},
		{"\x00\x01", "", errFormat},
		{"\x00\x01ab", "", errFormat},
		{"\x00\x40", "", errFormat},
		{"\x00\x80\x00\x00\x00", "", errFormat},
		{"\x00\x81\x00\x00\x00\x00\x00\x00\x00", "", errFormat},
		{"\x00\x81\xff\xff\xff\xff\xff\xff\xff\xffa", "", errFormat},
		{"\x00\x80\xff\xff\xff\xffa", "", errFormat},
		{"\x00\x82\x00\x00\x00\x01a", "", errFormat},
		{"\x00\xc0", "", errFormat},
		{"\x00\xc1\x01\x02\x03", "", errFormat},
		{"\x00\xc2\x01", "", errFormat},
		{"\x00\xc4\x01", "", errFormat},
	} {
		if got, err := newCodec().read(withFooter(tt.in)); string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q: got %q, %v, want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

// TestPayloadFooters: each byte counts, and the version is no later than is known.
func TestPayloadFooters(t *testing.T) {
	k := newCodec()
	whole := k.append(nil, "1700000030000000000")
	if got := string(whole); got != "\x00\x131700000030000000000\x0a\x00\x9ctR\xe4\xd9]\x97\xaf" { // of redis-server 7.0.15
		t.Errorf("got %q", got)
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 1
		for _, in := range [][]byte{bad, whole[:i]} {
			if _, err := k.read(in); !errors.Is(err, errChecksum) {
				t.Errorf("%q: %v", in, err)
			}
		}
	}
	for version, want := range map[uint16]error{0: nil, 6: nil, 11: nil, 12: nil, 13: errChecksum, 256: errChecksum, 65535: errChecksum} {
		b := binary.LittleEndian.AppendUint16([]byte("\x00\x01a"), version)
		b = binary.LittleEndian.AppendUint64(b, k.checksum(b))
		if _, err := k.read(b); !errors.Is(err, want) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// FuzzPayload reads any bytes, as they are and with a footer that fits. What is a TAT is the same when it is dumped again.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		"\x00\x131700000030000000000", "\x00\xc0\x07", "\x00\xc1,\x01", "\x00\xc2\x90\xee\xfe\xff", "\x00\x40\x131700000030000000000",
		"\x00\x80\x00\x00\x00\x131700000030000000000", "\x00\xc3\x09\x1e\x0111\xe0\x11\x00\x0111", "\x12\x01\x02", "\x00",
		"\x00\x131700000030000000000\x0a\x00\x9ctR\xe4\xd9]\x97\xaf",
	} {
		f.Add([]byte(seed), int64(0))
	}
	k := newCodec()
	f.Fuzz(func(t *testing.T, in []byte, nowNs int64) {
		if len(in) > 100 { // of which nothing new is to be found, but which take long to be made smaller
			return
		}
		_, _ = k.read(in)
		value, err := k.read(k.appendFooter(slices.Clone(in)))
		if (err == nil) != (value != nil) || len(value) > max(len(in), len("-2147483648")) {
			t.Fatalf("%d bytes, %v", len(value), err)
		}
		tatNs, err := tatOf(value, max(nowNs, 0))
		if err != nil {
			return
		}
		if text := valueOf(tatNs); text != string(value) {
			t.Fatalf("%q is read as %s", value, text)
		}
		if again, err := k.read(k.append(nil, string(value))); string(again) != string(value) || err != nil {
			t.Fatalf("%q, dumped and read again: %q, %v", value, again, err)
		}
	})
}
