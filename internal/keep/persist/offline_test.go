package persist

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// written returns a directory with a snapshot and two logs.
func written(t *testing.T) *disktest.Dir {
	t.Helper()
	d := disktest.New()
	all := states{"a": 10, "b": 20}
	if err := CreateDir(d, 7, func(visit func(c store.Change)) error { all.each(visit); return nil }); err != nil {
		t.Fatal(err)
	}
	_, l, err := loadStates(d)
	if err != nil {
		t.Fatal(err)
	}
	g, err := begin(d, l)
	if err != nil {
		t.Fatal(err)
	}
	add := func(clockNs int64, s states) {
		t.Helper()
		for range 2 {
			if _, err := g.add(clockNs, nil, encoded(clockNs, s.each)); err != nil || g.w.sync() != nil {
				t.Fatal(err)
			}
		}
	}
	add(8, states{"c": 30})
	if err := g.rotate(); err != nil {
		t.Fatal(err)
	}
	add(9, states{"a": 40, "b": 1})
	return d
}

func check(t *testing.T, d *disktest.Dir) (r Report, s states) {
	t.Helper()
	loaded := shard.New()
	r, err := Check(t.Context(), d, loaded, 0)
	if err != nil {
		t.Fatal(err)
	}
	s = states{}
	loaded.States(t.Context(), 0, func(c store.Change) { s.do(0, c) }, nil)
	return r, s
}

func TestCheck(t *testing.T) {
	d := written(t)
	d.SetContents("log-00000009", nil)
	r, s := check(t, d)
	if r.Damaged() || r.ClockNs != 9 || !maps.Equal(s, states{"a": 40, "c": 30}) {
		t.Errorf("%+v, %v", r, s)
	}
	if len(r.Files) != 3 || r.Files[0].Frames != 1 || r.Files[0].Records != 2 || r.Files[1].Frames != 2 || r.Files[2].Records != 4 ||
		r.Files[2].Bytes != int64(len(d.Contents("log-00000003"))) || len(r.Others) != 1 {
		t.Errorf("%+v", r)
	}
	if r, _ := check(t, disktest.New()); r.Damaged() || len(r.Files) != 0 {
		t.Errorf("an empty directory: %+v", r)
	}
	d.SetContents("log-00000003", append(d.Contents("log-00000003"), "FRAM and then the power went"...))
	if r, _ := check(t, d); r.Damaged() || r.Files[2].Tail.Bytes != 28 {
		t.Errorf("a torn tail: %+v", r)
	}
}

// TestCheckFindsDamage in each byte of each file, except in the last frame, and reads the other files.
func TestCheckFindsDamage(t *testing.T) {
	names := []string{manifestName, "snapshot-00000001", "log-00000002", "log-00000003"}
	for _, name := range names {
		size := len(written(t).Contents(name))
		if name == names[3] {
			size = (size + fileHeaderBytes) / 2
		}
		for at := range size {
			d := written(t)
			d.SetContents(name, bytes.Clone(d.Contents(name)))
			d.Contents(name)[at] ^= 4
			r, _ := check(t, d)
			if !r.Damaged() {
				t.Fatalf("byte %d of %s: %+v", at, name, r)
			}
			for _, f := range r.Files {
				if (f.Err != nil) != (f.Name == name) {
					t.Fatalf("byte %d of %s: %+v", at, name, r)
				}
			}
		}
		d := written(t)
		d.SetContents(name, nil)
		if r, _ := check(t, d); !r.Damaged() {
			t.Errorf("%s is empty: %+v", name, r)
		}
		if err := d.Remove(name); err != nil {
			t.Fatal(err)
		}
		if r, _ := check(t, d); !r.Damaged() {
			t.Errorf("%s is missing: %+v", name, r)
		}
	}
	d := written(t)
	frame := d.Contents("log-00000002")
	d.SetContents("log-00000002", append(bytes.Clone(frame[:fileHeaderBytes]), frame[fileHeaderBytes:][(len(frame)-fileHeaderBytes)/2:]...))
	if r, _ := check(t, d); !r.Damaged() || !strings.Contains(r.Files[1].Err.Error(), "byte 28 ") {
		t.Errorf("the first frame is missing: %+v", r)
	}
}

// TestCreateDir: after any failure or crash there is all or nothing, and existing data is refused.
func TestCreateDir(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := states{"a": 10, "b": 20}
	create := func(d *disktest.Dir) error {
		return CreateDir(d, 7, func(visit func(c store.Change)) error { all.each(visit); return nil })
	}
	for fails := 1; ; fails++ {
		d, failure, at := disktest.New(), errors.New("fails"), 0
		var crashed *disktest.Dir
		d.Before = func(disktest.Op, string) error {
			if at++; at != fails {
				return nil
			}
			crashed = d.Crash(rng)
			return failure
		}
		err := create(d)
		if err == nil {
			break
		}
		d.Before = nil
		for _, left := range []*disktest.Dir{crashed, d} {
			s, _, err := loadStates(left)
			if err != nil && !errors.Is(err, ErrDamaged) || len(s) > 0 && !maps.Equal(s, all) {
				t.Fatalf("operation %d failed: %v, %v", fails, s, err)
			}
			if len(s) > 0 {
				continue
			}
			if err := create(left); err != nil {
				t.Fatalf("operation %d failed: then %v", fails, err)
			}
		}
	}
	d := disktest.New()
	failure := errors.New("of the source")
	err := CreateDir(d, 7, func(visit func(c store.Change)) error { all.each(visit); return failure })
	if names, _ := d.List(); !errors.Is(err, failure) || len(names) != 0 {
		t.Errorf("%v left %v", err, names)
	}
	if err := create(d); err != nil {
		t.Fatal(err)
	}
	if err := create(d); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("a second time: %v", err)
	}
	if clockNs, err := ReadDir(t.Context(), d, shard.New(), 0); err != nil || clockNs != 7 {
		t.Errorf("the clock is %d, %v", clockNs, err)
	}
}

// FuzzCheck: Check and a start agree on damage in a log.
func FuzzCheck(f *testing.F) {
	f.Add(someRecords(), []byte("FRAM"), int64(-1), uint64(1))
	f.Add([]byte{}, []byte{}, int64(28), uint64(3))
	f.Fuzz(func(t *testing.T, payload, tail []byte, bytes int64, sequence uint64) {
		d := disktest.New()
		w, err := createFile(d, logName(1), kindLog, 1, 1)
		if err == nil {
			err = w.write(5, payload)
		}
		m := manifest{logs: []fileEntry{{1, sequence, max(bytes, -1)}}}
		if err := errors.Join(err, m.write(d)); err != nil {
			t.Fatal(err)
		}
		d.SetContents(logName(1), append(d.Contents(logName(1)), tail...))
		r, _ := check(t, d)
		if _, _, err := loadStates(d); r.Damaged() != (err != nil) {
			t.Errorf("a start says %v, and a check %+v", err, r)
		}
	})
}

// TestReadingEndsEarly: canceled reading reports no damage.
func TestReadingEndsEarly(t *testing.T) {
	d := written(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadDir(ctx, d, shard.New(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadDir: %v", err)
	}
	if _, err := Check(ctx, d, shard.New(), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Check: %v", err)
	}
}
