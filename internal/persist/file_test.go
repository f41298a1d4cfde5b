package persist

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"cellserver/internal/persist/disk/disktest"
)

func writeFrames(t *testing.T, d *disktest.Dir, payloads [][]byte) {
	t.Helper()
	w, err := createFile(d, "log", kindLog, 7, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range payloads {
		if err := w.write(int64(i), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.file.Sync(), w.file.Close(), d.SyncDir()); err != nil {
		t.Fatal(err)
	}
	if len(d.Contents("log")) != int(w.bytes) {
		t.Fatalf("%d bytes are counted, there are %d", w.bytes, len(d.Contents("log")))
	}
}

func readFrames(t *testing.T, d *disktest.Dir, want [][]byte) (n int, valid int64, err error) {
	t.Helper()
	f, err := d.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	valid, next, err := readFile(f, kindLog, frame{7, 100, 0}, func(f frame, payload []byte) error {
		if f.sequence != 100+uint64(n) || f.clockNs != int64(n) || !bytes.Equal(payload, want[n]) {
			return fmt.Errorf("frame %d: %+v with %d bytes", n, f, len(payload))
		}
		n++
		return nil
	})
	if next.sequence != 100+uint64(n) {
		t.Errorf("after %d frames the next is %+v", n, next)
	}
	return n, valid, err
}

func payloads(rng *rand.Rand, n int) (all [][]byte) {
	for range n {
		p := make([]byte, []int{0, 1, 100, 10_000, maxPayloadBytes}[rng.IntN(5)])
		for i := range min(len(p), 500) {
			p[i] = frameMagic[rng.IntN(4)]
		}
		all = append(all, p)
	}
	return all
}

// TestTornTail: a file that ends within a frame is read up to that; zeros in its place are the same.
func TestTornTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		all := payloads(rng, 1+rng.IntN(5))
		d := disktest.New()
		writeFrames(t, d, all)
		if n, valid, err := readFrames(t, d, all); n != len(all) || err != nil || int(valid) != len(d.Contents("log")) {
			t.Fatalf("%d of %d frames, %d bytes, %v", n, len(all), valid, err)
		}
		whole := d.Contents("log")
		last := len(whole) - frameHeaderBytes - len(all[len(all)-1])
		cut := last + rng.IntN(len(whole)-last)
		torn := bytes.Clone(whole[:cut])
		if rng.IntN(2) == 0 {
			torn = append(torn, make([]byte, len(whole)-cut)...)
			if bytes.Equal(torn, whole) {
				continue
			}
		}
		d.SetContents("log", torn)
		if n, valid, err := readFrames(t, d, all); n != len(all)-1 || err != nil || int(valid) != last {
			t.Fatalf("cut at %d of %d: %d of %d frames, %d bytes, %v", cut, len(whole), n, len(all), valid, err)
		}
	}
}

// TestDamage: a byte that changes is noticed wherever it is, unless it is in the last frame.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		all := append(payloads(rng, rng.IntN(3)), []byte("next to last"), []byte("last"))
		d := disktest.New()
		writeFrames(t, d, all)
		b := d.Contents("log")
		at := rng.IntN(len(b) - frameHeaderBytes - len("last"))
		if rng.IntN(2) == 0 {
			at = rng.IntN(min(200, at+1))
		}
		b[at] ^= 1 << rng.IntN(8)
		if n, _, err := readFrames(t, d, all); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Fatalf("byte %d of %d changed: %d of %d frames, %v", at, len(b), n, len(all), err)
		}
	}
}

// TestHeaders: files of other kinds, generations and formats.
func TestHeaders(t *testing.T) {
	newer := fileHeader(kindLog, 7)
	newer[12]++
	for name, tt := range map[string]struct {
		header []byte
		want   error
	}{
		"the same":           {fileHeader(kindLog, 7), nil},
		"another kind":       {fileHeader(kindSnapshot, 7), ErrDamaged},
		"another generation": {fileHeader(kindLog, 8), ErrDamaged},
		"empty":              {nil, ErrDamaged},
		"a changed format":   {newer, ErrDamaged},
	} {
		d := disktest.New()
		d.SetContents("log", tt.header)
		if n, _, err := readFrames(t, d, nil); n != 0 || !errors.Is(err, tt.want) || err != nil && tt.want == nil {
			t.Errorf("%s: %d frames, %v", name, n, err)
		}
	}
}
