package resp

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tidwall/redcon"
)

// FuzzDecoder: however a stream is cut, the commands and the error are the same, and encoding the commands
// again gives the consumed bytes.
func FuzzDecoder(f *testing.F) {
	for i, tt := range framingCases() {
		f.Add([]byte(tt.taken+tt.left), uint64(i), false)
	}
	f.Add(throttles(20), uint64(8), false)
	f.Add([]byte("*11\r\n*10\r\n$16385\r\n"), uint64(9), true)
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, unauthenticated bool) {
		if len(stream) > 4096 {
			t.Skip("only slower: TestLongLines has the bounds beyond")
		}
		d := Decoder{Limits: Limits{MaxArgs: 100, MaxCommandBytes: 1000}, Unauthenticated: unauthenticated}
		want := decode(t, d, stream, nil)
		random := rand.New(rand.NewPCG(seed, 0))
		some := make([]int, 0, 8)
		for at := 0; at < len(stream) && len(some) < cap(some); at += 1 + random.IntN(1+len(stream)/4) {
			some = append(some, at)
		}
		for _, cuts := range [][]int{some, everyCut(len(stream))[0]} {
			if got := decode(t, d, stream, cuts); !reflect.DeepEqual(got, want) {
				t.Fatalf("cut at %v: got %v, want %v", cuts, got, want)
			}
		}
		checkWrittenAgain(t, d, stream)
	})
}

// checkWrittenAgain encodes each command of a stream. The Decoder accepts only lengths in their shortest
// form, and makes each header end in CRLF, so a multibulk command must give the same bytes. All commands,
// including inline ones, must decode to the same arguments again.
func checkWrittenAgain(t *testing.T, d Decoder, stream []byte) {
	for buf := bytes.Clone(stream); ; {
		isInline := len(buf) > 0 && buf[0] != '*'
		n, args, err := d.Next(buf, nil)
		if n == 0 || err != nil {
			return
		}
		if len(args) == 0 {
			buf = buf[n:]
			continue
		}
		written := redcon.AppendArray(nil, len(args))
		for _, arg := range args {
			written = redcon.AppendBulk(written, arg)
		}
		if !isInline && !bytes.Equal(written, buf[:n]) {
			t.Fatalf("took %q for %q", buf[:n], args)
		}
		all := Decoder{Limits: Limits{MaxArgs: len(args), MaxCommandBytes: len(written)}}
		again := bytes.Clone(written)
		if m, same, err := all.Next(again, nil); err != nil || m != len(again) || !reflect.DeepEqual(same, args) {
			t.Fatalf("%q written again reads %q, %v", args, same, err)
		}
		buf = buf[n:]
	}
}
