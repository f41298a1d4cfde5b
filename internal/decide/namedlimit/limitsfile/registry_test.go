package limitsfile

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
)

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
func allowed(l *namedlimit.Limit) { named(l, "").Counts.Allowed.Add(1) }

func named(l *namedlimit.Limit, key string) *limiter.NamedLimit {
	n, _ := l.Named([]byte(key), &namedlimit.Moment{})
	return n
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
	if !has(r, mine) || ofFile.Source != namedlimit.ByFile || ofFile.Rules[0].Capacity != 9 || ofFile.Counts().Allowed != 1 {
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
	if err := after.Load(); err != nil || !has(after, mine) || len(after.All()) != 1 {
		t.Errorf("%v: kept %+v", err, after.All())
	}
	if err := New(config()).Reload(); !errors.Is(err, namedlimit.ErrNoFile) {
		t.Errorf("without a file: %v", err)
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
				if len(named(l, "").Rules) != len(l.Rules) || named(l, "").Rules[0].Rule.Funnel.Capacity() != l.Rules[0].Capacity {
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
	if err := after.Load(); err != nil || len(after.All()) != 8*19+1 || len(r.All()) != len(after.All()) {
		t.Errorf("%v: %d are kept, and %d there", err, len(after.All()), len(r.All()))
	}
	r.Close()
	if err := r.Set(definition("late", 5)); err == nil {
		t.Error("a change after Close")
	}
}

// TestOverridesOfARegistry: overrides by commands are in force again after a crash, with the file's plans.
func TestOverridesOfARegistry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yml")
	write(t, path, "limits: {api: {deny: true}}\nplans: {gold: {rules: [{algorithm: funnel, capacity: 7, count: 1, period: 1}]}}\n")
	dir := disktest.New()
	start := func(dir *disktest.Dir) *namedlimit.Registry {
		r := New(config(in(dir), func(c *Config) { c.File = path }))
		must(t, r.Load())
		must(t, r.Reload())
		return r
	}
	r := start(dir)
	for _, o := range []namedlimit.KeyOverride{
		{Limit: "api", Key: "a", Policy: namedlimit.Policy{Plan: "gold"}},
		{Limit: "api", Key: "b", Policy: namedlimit.Policy{Constant: limiter.Unlimited}},
		{Limit: "api", Key: "c", Policy: namedlimit.Policy{Constant: limiter.Unlimited}, UntilNs: 1},
	} {
		if _, err := r.Override(o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Override(removed("b")); err != nil {
		t.Fatal(err)
	}
	l := start(dir.Crash(rand.New(rand.NewPCG(1, 1)))).Lookup([]byte("api"))
	a, b, c := l.Explain([]byte("a"), namedlimit.At(r.Now()), funnel.Burst), l.Explain([]byte("b"), namedlimit.At(r.Now()), funnel.Burst), l.Explain([]byte("c"), namedlimit.At(r.Now()), funnel.Burst)
	if a.Plan != "gold" || !reflect.DeepEqual(a.Rules, []namedlimit.Rule{window(7, 1, 1)}) || b.Constant != limiter.Deny || c.Constant != limiter.Deny {
		t.Errorf("got %+v, %+v and %+v", a, b, c)
	}
}
