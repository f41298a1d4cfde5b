package persist

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
)

// damagedDir returns a directory with a flipped bit in a log, of which a key in the snapshot is left, and the
// files that a recovery must keep.
func damagedDir(t *testing.T) (dir *disktest.Dir, kept [][]byte) {
	t.Helper()
	dir = disktest.New()
	l := beginLife(dir, nil)
	l.charge("saved")
	if err := l.save(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		l.charge(fmt.Sprint("log", i))
		l.syncNow()
	}
	endAll(t, l)
	dir.Contents(logName(2))[fileHeaderBytes+50] ^= 1
	return dir, [][]byte{bytes.Clone(dir.Contents(logName(2))), bytes.Clone(dir.Contents(manifestName))}
}

func has(dir *disktest.Dir, contents []byte) bool {
	names, _ := dir.List()
	for _, name := range names {
		if bytes.Equal(dir.Contents(name), contents) {
			return true
		}
	}
	return false
}

// TestEveryEndOfARecovery: whenever a recovery is killed, or the machine crashes, there is a manifest, the
// next start goes on, and all damaged files are kept.
func TestEveryEndOfARecovery(t *testing.T) {
	repair := func(c *Config) { c.Repair = true }
	rng := rand.New(rand.NewPCG(5, 6))
	for at := 1; ; at++ {
		reached := false
		synctest.Test(t, func(t *testing.T) {
			dir, kept := damagedDir(t)
			var left []*disktest.Dir
			ops, last := 0, ""
			var mu sync.Mutex // guards these: a snapshot has a goroutine
			dir.Before = func(op disktest.Op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if ops++; ops == at {
					last = fmt.Sprint(op, " ", name)
					left = append(left, dir.Kill(), dir.Crash(rng), dir.Crash(rng))
				}
				return nil
			}
			first := beginLife(dir, repair)
			first.syncNow()
			endAll(t, first)
			for i, d := range left {
				if d.Contents(manifestName) == nil {
					t.Errorf("before %d, %s, %d: there is no manifest", at, last, i)
				}
				again := beginLife(d, repair)
				if err := again.alive(); err != nil {
					t.Errorf("before %d, %s, %d: %v", at, last, i, err)
					continue
				}
				if again.tat("saved") == 0 {
					t.Errorf("before %d, %s, %d: a key is gone", at, last, i)
				}
				again.syncNow()
				endAll(t, again)
				for _, b := range kept {
					if !has(d, b) {
						names, _ := d.List()
						t.Errorf("before %d, %s, %d: a damaged file is not kept in %q", at, last, i, names)
					}
				}
				if m, err := readManifest(d); err != nil || d.Contents(recoveryName) != nil {
					t.Errorf("before %d, %s, %d: at last the manifest is %+v, %v", at, last, i, m, err)
				}
			}
			reached = ops >= at
		})
		if !reached || t.Failed() {
			return
		}
	}
}

// TestMissingBeside: a manifest names the files beside from when they are there, whenever that is, and a
// start without one is refused; with Repair it goes on without it.
func TestMissingBeside(t *testing.T) {
	named := func(c *Config) { c.Named = []string{"A", "B"} }
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir := disktest.New()
			if !late {
				dir.SetContents("A", []byte("a"))
			}
			l := beginLife(dir, named)
			if late {
				dir.SetContents("A", []byte("a"))
				l.NameBeside()
			}
			if m, err := readManifest(dir); err != nil || fmt.Sprint(m.beside) != "[A]" {
				t.Errorf("late %t: the manifest is %+v, %v", late, m, err)
			}
			l.charge("k")
			if err := l.save(); err != nil {
				t.Fatal(err)
			}
			endAll(t, l)
			if m, err := readManifest(dir); err != nil || fmt.Sprint(m.beside) != "[A]" {
				t.Errorf("late %t: after a snapshot the manifest is %+v, %v", late, m, err)
			}
			if err := dir.Remove("A"); err != nil {
				t.Fatal(err)
			}
			r, _ := check(t, dir)
			if last := r.Files[len(r.Files)-1]; !r.Damaged() || last.Name != "A" || !errors.Is(last.Err, ErrDamaged) {
				t.Errorf("late %t: checked: %+v", late, r)
			}
			refused := beginLife(dir, named)
			if err := <-refused.ended; !errors.Is(err, ErrDamaged) {
				t.Errorf("late %t: %v", late, err)
			}
			repaired := beginLife(dir, func(c *Config) { named(c); c.Repair = true })
			if err := repaired.alive(); err != nil || repaired.tat("k") == 0 {
				t.Errorf("late %t: repaired: %v", late, err)
			}
			endAll(t, repaired)
			again := beginLife(dir, named)
			if err := again.alive(); err != nil {
				t.Errorf("late %t: again: %v", late, err)
			}
			endAll(t, again)
		})
	}
}

// TestNamingDuringAFault: who names a file waits for a while, and the next generation has it.
func TestNamingDuringAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		var broken atomic.Bool
		dir.Before = func(op disktest.Op, _ string) error {
			if broken.Load() && op == disktest.Rename {
				return errDisk
			}
			return nil
		}
		l := beginLife(dir, func(c *Config) { c.Named = []string{"A"} })
		broken.Store(true)
		dir.SetContents("A", nil)
		before := time.Now()
		l.NameBeside()
		if time.Since(before) > namingTimeout {
			t.Error("it was waited for without end")
		}
		synctest.Wait()
		broken.Store(false)
		time.Sleep(2 * mostRetry)
		endAll(t, l)
		if m, err := readManifest(dir); err != nil || len(m.beside) != 1 {
			t.Errorf("the manifest is %+v, %v", m, err)
		}
	})
}

// TestTail: each flipped bit of the last frame is told apart from what a crash leaves of it.
func TestTail(t *testing.T) {
	d := disktest.New()
	writeFrames(t, d, [][]byte{[]byte("first"), []byte("the payload of the last one")})
	whole := d.Contents("log")
	from := int64(len(whole) - frameHeaderBytes - len("the payload of the last one"))
	tail := func(b []byte) Tail {
		t.Helper()
		d.SetContents("log", b)
		f, err := d.Open("log")
		if err != nil {
			t.Fatal(err)
		}
		tail, err := tailOf("log", f, from, frame{generation: 7, sequence: 101})
		if err != nil || tail.At != from || tail.Bytes != int64(len(b))-from || tail.File != "log" {
			t.Fatalf("%+v, %v", tail, err)
		}
		return tail
	}
	for bit := 8 * int(from); bit < 8*len(whole); bit++ {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if got := tail(b); !got.Complete {
			t.Errorf("bit %d of byte %d: %+v", bit%8, bit/8-int(from), got)
		}
	}
	for n := int(from); n < len(whole); n++ {
		if got := tail(whole[:n]); got.Complete {
			t.Errorf("cut at %d: %+v", n-int(from), got)
		}
		zeros := append(bytes.Clone(whole[:n]), make([]byte, len(whole)-n)...)
		if got := tail(zeros); got.Complete {
			t.Errorf("zeros from %d: %+v", n-int(from), got)
		}
	}
}
