package persist

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/shard"
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
		p := make([]byte, []int{0, 1, 100, 100, 10_000, 10_000, 10_000, maxPayloadBytes}[rng.IntN(8)])
		for i := range min(len(p), 500) {
			p[i] = frameMagic[rng.IntN(4)]
		}
		all = append(all, p)
	}
	return all
}

// TestTornTail: a file is read up to an incomplete frame; zeros count as incomplete.
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

// TestDamage: every changed byte is noticed, except in the last frame.
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
		if n, _, err := readFrames(t, d, all); !errors.Is(err, ErrDamaged) {
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

// TestClockBeyondTheYear2200: an impossible time is damage, even in the last frame, and skipped in recovery.
func TestClockBeyondTheYear2200(t *testing.T) {
	const last = endOfTimeNs - 1
	for _, kind := range []string{kindLog, kindSnapshot} {
		for _, clocks := range [][]int64{{1, endOfTimeNs}, {1, endOfTimeNs, last}, {1, math.MaxInt64, last}} {
			d := disktest.New()
			w, err := createFile(d, "file", kind, 7, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, clockNs := range clocks {
				if err := w.write(clockNs, []byte{byte(len(clocks))}); err != nil {
					t.Fatal(err)
				}
			}
			f, err := d.Open("file")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			visit := func(frame, []byte) error { n++; return nil }
			_, next, err := readFile(f, kind, frame{7, 1, 0}, visit)
			if !errors.Is(err, ErrDamaged) || !errors.Is(err, errClock) || n != 1 || next.clockNs != 1 {
				t.Errorf("%v: %d frames, the latest of %d, %v", clocks, n, next.clockNs, err)
			}
			n = 0
			next, damage, err := recoverFile(f, kind, frame{7, 1, 0}, visit)
			if latest := []int64{0, 0, 1, last}[len(clocks)]; next.clockNs != latest || n != len(clocks)-1 ||
				len(damage) != 1 || !errors.Is(damage[0], errClock) || err != nil ||
				next.sequence != uint64(len(clocks)+1) {
				t.Errorf("%v: recovered %d frames, next %+v, damage %v, %v", clocks, n, next, damage, err)
			}
		}
	}
}

// TestClockOfTheSystem: a server with an unreadable time reports it and writes nothing.
func TestClockOfTheSystem(t *testing.T) {
	d := disktest.New()
	k := New(Config{
		Dir: d, Store: shard.New(), Now: func() int64 { return endOfTimeNs }, Log: slog.New(slog.DiscardHandler),
	})
	want := "persist: the system's clock, 2201-01-01, is beyond the year 2200: set it, then start again"
	if err := k.Run(t.Context(), func() {}); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := CreateDir(d, endOfTimeNs, nil); err == nil || err.Error() != want {
		t.Error(err)
	}
	if names, err := d.List(); len(names) > 0 || err != nil {
		t.Error(names, err)
	}
}
