package limitsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
)

func config(change ...func(*Config)) Config {
	c := Config{Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	return c
}

func in(dir *disktest.Dir) func(*Config) { return func(c *Config) { c.Dir = dir } }

func window(capacity, count, periodSec int64) namedlimit.Window {
	return namedlimit.Window{Capacity: capacity, Count: count, PeriodSec: periodSec}
}

func definition(name string, capacity int64) namedlimit.Definition {
	return namedlimit.Definition{Name: name, Windows: []namedlimit.Window{window(capacity, 5, 60), window(100, 100, 86400)}}
}

func mustSet(t *testing.T, r *namedlimit.Registry, d namedlimit.Definition) {
	t.Helper()
	if err := r.Set(d); err != nil {
		t.Fatal(err)
	}
}

func has(r *namedlimit.Registry, d namedlimit.Definition) bool {
	l := r.Lookup([]byte(d.Name))
	return l != nil && l.Equal(&d)
}

// allowed counts an allowed request.
func allowed(l *namedlimit.Limit) {
	l.Named().Counter(1, &funnel.Result{}).Add(1)
}

func TestMostNames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yml")
	r := New(config(func(c *Config) { c.File = path }))
	write(t, path, manyLimits(namedlimit.MaxNames-1))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	mustSet(t, r, definition("last", 5))
	mustSet(t, r, definition("last", 6))
	if err := r.Set(definition("more", 5)); err == nil || err.Error() != "1024 limits exist, the maximum; delete one first" {
		t.Errorf("one more: %v", err)
	}
	write(t, path, manyLimits(namedlimit.MaxNames))
	want := path + ": 1025 limits with those defined by commands; the maximum is 1024"
	if err := r.Reload(); err == nil || err.Error() != want {
		t.Errorf("a larger file: %v", err)
	}
	if len(r.All()) != namedlimit.MaxNames || r.All()[0].Name != "l0" {
		t.Errorf("%d limits", len(r.All()))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yml")
	dir := disktest.New()
	var log strings.Builder
	r := New(config(in(dir), func(c *Config) { c.File, c.Log = path, slog.New(slog.NewTextHandler(&log, nil)) }))
	mine, theirs := definition("mine", 5), definition("theirs", 5)
	mustSet(t, r, mine)
	mustSet(t, r, theirs)
	allowed(r.Lookup([]byte("theirs")))

	write(t, path, "limits: {theirs: {windows: [{max_burst: 8, count: 1, period: 1}]}}\n")
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	ofFile := r.Lookup([]byte("theirs"))
	if !has(r, mine) || ofFile.Source != namedlimit.ByFile || ofFile.Windows[0].Capacity != 9 || ofFile.Counts().Allowed != 1 {
		t.Errorf("got %+v", ofFile)
	}
	if !strings.Contains(log.String(), `now comes from the file" limit=theirs`) {
		t.Errorf("logged %s", log.String())
	}
	_, err := r.Delete("theirs")
	want := "the limit 'theirs' is defined in " + path + "; change it there, and send CL.LIMIT RELOAD or SIGHUP"
	if setErr := r.Set(theirs); setErr == nil || setErr.Error() != want || err == nil || err.Error() != want {
		t.Errorf("changed by command: %v, %v", setErr, err)
	}
	for _, bad := range []string{"limits: {theirs: {}}\n", "limits: {}"} { // invalid, without a newline
		write(t, path, bad)
		if err := r.Reload(); err == nil || r.Lookup([]byte("theirs")) != ofFile || !r.Reloads().LastFailed {
			t.Errorf("%q: %v, and then %+v", bad, err, r.Lookup([]byte("theirs")))
		}
	}
	write(t, path, "limits: {}\n")
	if err := r.Reload(); err != nil || r.Lookup([]byte("theirs")) != nil || r.Reloads() != (namedlimit.Reloads{Done: 2, Failed: 2}) {
		t.Errorf("%v, %+v", err, r.Reloads())
	}
	after := New(config(in(dir)))
	if err := after.Load(); err != nil || !has(after, mine) || after.Len() != 1 {
		t.Errorf("%v: kept %+v", err, after.All())
	}
	if err := New(config()).Reload(); !errors.Is(err, namedlimit.ErrNoFile) {
		t.Errorf("without a file: %v", err)
	}
}

// TestKept: a definition survives a crash once Set has returned; an earlier crash leaves the old one.
func TestKept(t *testing.T) {
	t.Parallel()
	before, next := definition("a", 5), namedlimit.Definition{Name: "a", Windows: []namedlimit.Window{window(1, 2, 3)}, Shadow: true}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		dir := disktest.New()
		r := New(config(in(dir)))
		mustSet(t, r, before)
		var crashed *disktest.Dir
		steps := rng.IntN(8)
		dir.Before = func(disktest.Op, string) error {
			if steps--; steps == 0 {
				crashed = dir.Crash(rng)
			}
			return nil
		}
		mustSet(t, r, next)
		done := crashed == nil
		if done {
			crashed = dir.Crash(rng)
		}
		after := New(config(in(crashed)))
		if err := after.Load(); err != nil || !has(after, next) && (done || !has(after, before)) {
			t.Errorf("seed %d: %v: %+v", seed, err, after.All())
		}
	}
}

// TestFailingDisk: unwritten definitions are not in force; those in force are written again.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	for _, op := range []disktest.Op{disktest.Create, disktest.Write, disktest.Sync, disktest.Rename, disktest.SyncDir} {
		dir := disktest.New()
		r := New(config(in(dir)))
		first, second := definition("a", 5), definition("a", 6)
		mustSet(t, r, first)
		broken := errors.New("broken")
		dir.Before = func(got disktest.Op, _ string) error {
			if got == op {
				return broken
			}
			return nil
		}
		if err := r.Set(second); !errors.Is(err, broken) || !has(r, first) {
			t.Errorf("%s: %v", op, err)
		}
		if found, err := r.Delete("nosuch"); !errors.Is(err, broken) || found {
			t.Errorf("%s: %v", op, err)
		}
		dir.Before = nil
		mustSet(t, r, first) // the directory may have the second
		after := New(config(in(dir.Crash(rand.New(rand.NewPCG(1, 1))))))
		if err := after.Load(); err != nil || !has(after, first) {
			t.Errorf("%s: %v: %+v", op, err, after.All())
		}
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	mustSet(t, New(config(in(dir))), definition("a", 5))
	good := string(dir.Contents(KeptName))
	if want := "cellserver limits, format 1\na 5 5 60 100 100 86400\ncrc32c "; !strings.HasPrefix(good, want) {
		t.Fatalf("kept as %q", good)
	}
	if n, size, err := CheckKept(dir); n != 1 || size != int64(len(good)) || err != nil {
		t.Errorf("checked: %d, %d, %v", n, size, err)
	}
	if _, _, err := CheckKept(disktest.New()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	newer := strings.Replace(good, "format 1", "format 2", 1)
	for _, bad := range []string{"", "\n\n", good[:len(good)-1], good + "\n", strings.Replace(good, "a 5", "b 5", 1), strings.Replace(good, "60 ", "", 1), newer} {
		dir.SetContents(KeptName, []byte(bad))
		wanted := persist.ErrDamaged
		if bad == newer {
			wanted = persist.ErrNewer
		}
		_, _, checkErr := CheckKept(dir)
		err := New(config(in(dir))).Load()
		if !errors.Is(err, wanted) || !errors.Is(checkErr, wanted) || strings.Contains(err.Error(), "--data-recover") != (bad != newer) {
			t.Errorf("%q: %v, and checked %v", bad, err, checkErr)
		}
		repaired := New(config(in(dir), func(c *Config) { c.Repair = true }))
		if err := repaired.Load(); bad == newer {
			if !errors.Is(err, persist.ErrNewer) {
				t.Errorf("%q: %v", bad, err)
			}
		} else if err != nil || dir.Contents(KeptName) != nil {
			t.Errorf("%q: %v, and the file is still there", bad, err)
		}
	}
	if string(dir.Contents("damaged-2-"+KeptName)) != "\n\n" {
		t.Error("the damaged file was not set aside")
	}
}

func FuzzParseKept(f *testing.F) {
	f.Add(keptText([]namedlimit.Definition{definition("a", 5), {Name: "b", Windows: []namedlimit.Window{window(1, 1, 1)}, Shadow: true}}))
	f.Add(keptText(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		if all, err := parseKept(text); err == nil && string(keptText(all)) != string(text) {
			t.Errorf("%q is read as %+v", text, all)
		}
	})
}

// TestConcurrentChanges: none is lost, and lookups see whole definitions.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	r := New(config(in(dir)))
	var changing, looking sync.WaitGroup
	stop := make(chan struct{})
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if l := r.Lookup([]byte("shared")); l != nil {
				allowed(l)
				if len(l.Named().Windows) != len(l.Windows) || l.Named().Windows[0].Funnel.Capacity() != l.Windows[0].Capacity {
					t.Errorf("saw %+v", l)
				}
			}
			r.All()
		}
	})
	for worker := range 8 {
		changing.Go(func() {
			for i := range 20 {
				for _, d := range []namedlimit.Definition{definition(fmt.Sprintf("own-%d-%d", worker, i), 5), definition("shared", int64(worker+1))} {
					if err := r.Set(d); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := r.Delete(fmt.Sprintf("own-%d-0", worker)); err != nil {
				t.Error(err)
			}
		})
	}
	changing.Wait()
	close(stop)
	looking.Wait()
	after := New(config(in(dir)))
	if err := after.Load(); err != nil || after.Len() != 8*19+1 || r.Len() != after.Len() {
		t.Errorf("%v: %d are kept, and %d there", err, after.Len(), r.Len())
	}
	r.Close()
	if err := r.Set(definition("late", 5)); err == nil {
		t.Error("a change after Close")
	}
}
