package lua

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/test/racetest"
)

func source(kind string, i int) []byte { return fmt.Appendf(nil, "return '%s %d'", kind, i) }

func mustLoad(t *testing.T, e *Engine, source []byte) *Script {
	t.Helper()
	s, err := e.Load(source)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (e *Engine) knows(s *Script) bool {
	e.cache.mu.RLock()
	defer e.cache.mu.RUnlock()
	return e.scripts[s.key] != nil
}

// TestScriptFlood: a client that loads many scripts, called once or never, gets no errors, stays in the
// cache's bounds, and evicts neither used nor just loaded scripts.
func TestScriptFlood(t *testing.T) {
	racetest.SkipAlone(t)
	if racetest.OmitsLong() {
		t.Skip("takes seconds")
	}
	for _, tt := range []struct{ loads, calls bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		const most = 200_000
		e := newEngine(Config{MaxScripts: 40, MaxLoaded: 100, MaxCacheBytes: most})
		busy := mustLoad(t, e, source("busy", 0))
		evaluated, err := e.Evaluate(source("evaluated", 0))
		if err != nil {
			t.Fatal(err)
		}
		rare := mustLoad(t, e, source("rare", 0))
		e.Lookup([]byte(rare.SHA1))
		var fresh *Script
		const flood = 5000
		for i := range flood {
			add := e.Evaluate
			if tt.loads {
				add = e.Load
			}
			s, err := add(source("flood", i))
			if err != nil {
				t.Fatalf("%+v: script %d: %v", tt, i, err)
			}
			if tt.calls {
				e.Lookup([]byte(s.SHA1))
			}
			if e.Lookup([]byte(busy.SHA1)) != busy || e.Cached(source("evaluated", 0)) != evaluated {
				t.Fatalf("%+v: a script that is called all the time was evicted by the flood's %d-th", tt, i)
			}
			if i == flood-3 {
				fresh = mustLoad(t, e, source("fresh", 0))
			}
			if _, bytes := e.CacheStats(); bytes > most {
				t.Fatalf("%+v: %d bytes", tt, bytes)
			}
		}
		if !e.knows(fresh) {
			t.Errorf("%+v: a script that was just loaded was evicted", tt)
		}
		if !tt.loads && !e.knows(rare) {
			t.Errorf("%+v: EVAL's scripts evicted a loaded one", tt)
		}
		if !tt.calls && !e.knows(rare) {
			t.Errorf("%+v: a script that was called was evicted before those that never were", tt)
		}
		if n, _ := e.CacheStats(); n > 140 {
			t.Errorf("%+v: %d scripts", tt, n)
		}
	}
}

// TestUsedScriptsStay: unused scripts have no more than their share.
func TestUsedScriptsStay(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const scripts = 1000
	e := newEngine(Config{MaxScripts: scripts})
	var all []*Script
	for i := range scripts {
		s, err := e.Evaluate(source("mine", i))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		e.Lookup([]byte(s.SHA1))
	}
	for i := range 10 * scripts {
		if _, err := e.Evaluate(source("other", i)); err != nil {
			t.Fatal(err)
		}
	}
	left := 0
	for _, s := range all {
		if e.knows(s) {
			left++
		}
	}
	if want := scripts * 3 / 4; left < want {
		t.Errorf("%d scripts that were used are left, want %d or more", left, want)
	}
	if n, _ := e.CacheStats(); n != scripts {
		t.Errorf("%d scripts", n)
	}
}

func TestCachePartitions(t *testing.T) {
	e := newEngine(Config{MaxCacheBytes: 40_000})
	s, err := e.Evaluate(source("moves", 0))
	if err != nil || e.Loaded(source("moves", 0)) != nil || e.Cached(source("moves", 0)) != s {
		t.Fatal("EVAL's script is not known, or loaded", err)
	}
	if loaded := mustLoad(t, e, source("moves", 0)); loaded != s || e.Loaded(source("moves", 0)) != s {
		t.Error("SCRIPT LOAD does not load what EVAL has compiled")
	}
	if again, err := e.Evaluate(source("moves", 0)); again != s || err != nil || e.Loaded(source("moves", 0)) != s {
		t.Error("EVAL takes back what was loaded")
	}
	large := []byte("return 1 " + strings.Repeat("--\n", 14_000))
	if _, err := e.Load(large); err == nil || !strings.HasPrefix(err.Error(), "ERR the script takes 43") || !strings.Contains(err.Error(), "of 30000 that all loaded scripts may take") {
		t.Errorf("a script that is larger than the cache: %v", err)
	}
	if s, err := e.Evaluate(large); err != nil || s == nil || e.Cached(large) != nil {
		t.Errorf("EVAL of a script that is larger than the cache: %v", err)
	}
	n, bytes := e.CacheStats()
	if n != 1 || bytes != s.costBytes {
		t.Errorf("%d scripts of %d bytes, want one of %d", n, bytes, s.costBytes)
	}
	e.Flush()
	if n, bytes := e.CacheStats(); n != 0 || bytes != 0 || e.Cached(source("moves", 0)) != nil {
		t.Errorf("%d scripts, %d bytes after Flush", n, bytes)
	}
	mustLoad(t, e, source("after", 0))
}
