package limitsfile

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
)

// TestOverridesAreCompacted: the log is bounded by the overrides in force.
func TestOverridesAreCompacted(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	o := overridingIn(dir)
	maxLines := 0
	for i := range 3 * spareLines {
		must(t, o.change(set(fmt.Sprint(i%10), int64(1+i))))
		maxLines = max(maxLines, strings.Count(string(dir.Contents(OverridesName)), "\n"))
	}
	if maxLines != 2*10+spareLines {
		t.Errorf("%d lines", maxLines)
	}
	if got := loadedFrom(t, dir); !same(got, o.sorted()) {
		t.Errorf("got %+v", got)
	}
}

// TestOverridesSurviveCrashes: a change survives a crash at any step after it was kept; one under way may.
func TestOverridesSurviveCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := disktest.New()
		o := overridingIn(dir)
		steps := rng.IntN(40)
		var crashed *disktest.Dir
		dir.Before = func(disktest.Op, string) error {
			if steps--; steps == 0 {
				crashed = dir.Crash(rng)
			}
			return nil
		}
		var before []namedlimit.KeyOverride
		for i := 0; crashed == nil && i < 20; i++ {
			before = o.sorted()
			if rng.IntN(8) == 0 {
				must(t, o.Rewrite(nil, maps.Values(o.all)))
			} else if rng.IntN(3) == 0 {
				must(t, o.change(removed(fmt.Sprint(rng.IntN(3)))))
			} else {
				must(t, o.change(set(fmt.Sprint(rng.IntN(3)), rng.Int64N(100)+1)))
			}
		}
		if crashed == nil {
			before = o.sorted()
			crashed = dir.Crash(rng)
		}
		got := loadedFrom(t, crashed)
		if !same(got, before) && !same(got, o.sorted()) {
			t.Errorf("seed %d: got %+v, want %+v or %+v", seed, got, before, o.sorted())
		}
		after := overridingIn(crashed)
		for _, g := range got {
			after.all[overriddenKey{g.Limit, g.Key}] = g
		}
		must(t, after.change(set("after", 1)))
		if got := loadedFrom(t, crashed.Crash(rng)); !same(got, after.sorted()) {
			t.Errorf("seed %d: after it got %+v, want %+v", seed, got, after.sorted())
		}
	}
}

// TestOverridesOnAFailingDisk: each operation fails in turn. What was kept stays; the next change is kept.
func TestOverridesOnAFailingDisk(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for failing := 0; ; failing++ {
		rng := rand.New(rand.NewPCG(uint64(failing), 2))
		dir := disktest.New()
		o := overridingIn(dir)
		at, failed := 0, false
		var op disktest.Op
		dir.Before = func(got disktest.Op, _ string) error {
			if at++; at == failing+1 {
				op, failed = got, true
				return broken
			}
			return nil
		}
		for i, c := range keptChanges() {
			before := o.sorted()
			err := o.change(c)
			if err == nil {
				continue
			}
			if !errors.Is(err, broken) || !same(o.sorted(), before) {
				t.Errorf("%s of change %d: %v", op, i, err)
			}
			next := maps.Clone(o.all)
			next[overriddenKey{c.Limit, c.Key}] = c
			with := (&keptOverrides{all: next}).sorted()
			if got := loadedFrom(t, dir.Crash(rng)); !same(got, before) && !same(got, with) {
				t.Errorf("%s of change %d: got %+v", op, i, got)
			}
			must(t, o.change(c))
			if got := loadedFrom(t, dir.Crash(rng)); !same(got, o.sorted()) {
				t.Errorf("%s of change %d, again: got %+v", op, i, got)
			}
		}
		if got := loadedFrom(t, dir.Crash(rng)); !same(got, o.sorted()) || len(got) != 4 {
			t.Errorf("%s: got %+v", op, got)
		}
		if !failed {
			return
		}
	}
}

// TestOverridesAppend: a change is one write and one sync.
func TestOverridesAppend(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	o := overridingIn(dir)
	must(t, o.change(set("a", 1)))
	var ops []disktest.Op
	dir.Before = func(op disktest.Op, _ string) error {
		ops = append(ops, op)
		return nil
	}
	must(t, o.change(set("b", 2)))
	if !slices.Equal(ops, []disktest.Op{disktest.Write, disktest.Sync}) {
		t.Errorf("%q", ops)
	}
}

// TestOverridesGone: a file that was removed or replaced is noticed, and written again by the next change.
func TestOverridesGone(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(dir *disktest.Dir){
		"removed":  func(dir *disktest.Dir) { dir.Delete(OverridesName) },
		"replaced": func(dir *disktest.Dir) { dir.SetContents(OverridesName, []byte("other")) },
	} {
		dir := disktest.New()
		o := overridingIn(dir)
		must(t, o.change(set("a", 1)))
		must(t, o.change(set("b", 2)))
		must(t, o.Check())
		damage(dir)
		if err := o.Check(); !errors.Is(err, disk.ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, o.change(set("c", 3)))
		must(t, o.Check())
		if got := loadedFrom(t, dir.Crash(rand.New(rand.NewPCG(1, 1)))); !same(got, o.sorted()) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	dir := disktest.New()
	o := overridingIn(dir)
	must(t, o.change(set("a", 1)))
	dir.Vanish()
	if err := o.change(set("b", 2)); !errors.Is(err, disk.ErrGone) {
		t.Errorf("without the directory: %v", err)
	}
	dir.Return(nil)
	if _, err := dir.Regain(func(disk.Dir, bool) error { return nil }); err != nil {
		t.Fatal(err)
	}
	must(t, o.Rewrite([]namedlimit.Definition{definition("a", 5)}, maps.Values(o.all)))
	if got, err := keeperIn(dir).Load(); len(got) != 1 || err != nil || !same(loadedFrom(t, dir), o.sorted()) {
		t.Errorf("rewritten: %+v, %v", got, err)
	}
}

// TestOverridesOfTheSystem: on a real disk, too, a renamed file is appended to.
func TestOverridesOfTheSystem(t *testing.T) {
	t.Parallel()
	dir, err := disk.OpenOS(t.TempDir())
	must(t, err)
	defer func() { _ = dir.Close() }() // all was synced
	k := newKeeper(&Config{Dir: dir, Calendars: calendars()})
	defer k.overrides.drop()
	all := map[overriddenKey]namedlimit.KeyOverride{}
	for i := range 5 {
		c := set(fmt.Sprint(i), 1)
		all[overriddenKey{c.Limit, c.Key}] = c
		must(t, k.KeepOverride(c, len(all), maps.Values(all)))
		must(t, k.Check())
	}
	if n, size, _, err := CheckOverrides(dir); n != 5 || size != k.overrides.size || k.overrides.lines != 6 || err != nil {
		t.Errorf("%d, %d, %v", n, size, err)
	}
}
