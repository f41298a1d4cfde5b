package namedlimit

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/funnel"
)

func newRegistry() *Registry { return New(Config{Log: slog.New(slog.DiscardHandler)}) }

func definition(name string, capacity int64) Definition {
	return Definition{Name: name, Windows: []Window{{capacity, 5, 60}, {100, 100, 86400}}}
}

func mustSet(t *testing.T, r *Registry, d Definition) {
	t.Helper()
	if err := r.Set(d); err != nil {
		t.Fatal(err)
	}
}

func has(r *Registry, d Definition) bool {
	l := r.Lookup([]byte(d.Name))
	return l != nil && l.Equal(&d)
}

func TestSet(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	first, second := definition("a", 5), definition("a", 6)
	mustSet(t, r, first)
	l := r.Lookup([]byte("a"))
	if !has(r, first) || l.Source != ByCommand || l.named.Windows[0].PeriodNs != 60e9 || l.named.Windows[0].Funnel.Capacity() != 5 || r.Lookup([]byte("b")) != nil {
		t.Errorf("got %+v", l)
	}
	mustSet(t, r, first)
	if r.Lookup([]byte("a")) != l {
		t.Error("an equal definition replaced the limit")
	}
	allowed(l)
	mustSet(t, r, second)
	if got := r.Lookup([]byte("a")); !has(r, second) || got.Counts() != (Counts{Allowed: 1}) {
		t.Errorf("got %+v with %+v", got, got.Counts())
	}
	found, err := r.Delete("a")
	again, err2 := r.Delete("a")
	if !found || again || err != nil || err2 != nil || r.Len() != 0 {
		t.Errorf("deleted: %t, %v; again: %t, %v; %d are left", found, err, again, err2, r.Len())
	}
	for _, tt := range []struct {
		d    Definition
		want string
	}{
		{Definition{Name: ""}, "a limit's name must be"},
		{Definition{Name: strings.Repeat("n", 65)}, "a limit's name must be"},
		{Definition{Name: "ü"}, "a limit's name must be"},
		{Definition{Name: "a"}, "a limit must have 1 to 16 windows, got 0"},
		{Definition{Name: "a", Windows: make([]Window, 17)}, "a limit must have 1 to 16 windows, got 17"},
		{Definition{Name: "a", Windows: []Window{{1, 1, 60}, {2, 2, 60}}}, "two windows have the period 60"},
		{Definition{Name: "a", Windows: []Window{{1, 0, 60}}}, "Zero rates"},
	} {
		if err := r.Set(tt.d); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %s", tt.d, err, tt.want)
		}
	}
}

func TestMaxBurst(t *testing.T) {
	t.Parallel()
	for _, reading := range []funnel.Reading{funnel.Burst, funnel.Capacity} {
		w, err := NewWindow(reading, 7, 5, 60)
		if err != nil || w.MaxBurst(reading) != 7 {
			t.Errorf("reading %d: %+v, %v", reading, w, err)
		}
	}
}

// allowed counts an allowed request.
func allowed(l *Limit) {
	l.Named().Counter(1, &funnel.Result{}).Add(1)
}

// TestCounts: counts go on across definitions.
func TestCounts(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	for capacity := range int64(2) {
		d := definition("a", capacity+1)
		d.Shadow = capacity == 1
		mustSet(t, r, d)
		named := r.Lookup([]byte("a")).Named()
		if named.Shadow != d.Shadow || named.Windows[0].Funnel.Capacity() != capacity+1 {
			t.Errorf("got %+v", named)
		}
		for _, result := range []funnel.Result{{}, {Limited: true}, {Shadowed: true}, {Limited: true}} {
			named.Counter(1, &result).Add(1)
		}
	}
	if got, want := r.Lookup([]byte("a")).Counts(), (Counts{Allowed: 2, Limited: 4, ShadowLimited: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	r := newRegistry()
	mustSet(t, r, definition("a", 5))
	name := []byte("a")
	if n := testing.AllocsPerRun(100, func() { allowed(r.Lookup(name)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// hangingKeeper hangs once, until it is released.
type hangingKeeper struct {
	hangs   chan<- struct{}
	release <-chan struct{}
}

func (k hangingKeeper) Keep([]Definition) error {
	select {
	case k.hangs <- struct{}{}:
		<-k.release
	default:
	}
	return nil
}

func (k hangingKeeper) Load() ([]Definition, error) { return nil, nil }
func (k hangingKeeper) Check() error                { return nil }

func TestTooManyChanges(t *testing.T) {
	t.Parallel()
	hangs, release := make(chan struct{}, 1), make(chan struct{})
	r := New(Config{Log: slog.New(slog.DiscardHandler), Keeper: hangingKeeper{hangs, release}})
	results := make(chan error)
	for i := range maxChanges + 1 {
		go func() { results <- r.Set(definition(fmt.Sprint("l", i), 5)) }()
	}
	<-hangs
	if err := <-results; !errors.Is(err, ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	if r.Reloads() != (Reloads{}) || r.Len() != 0 || r.Lookup([]byte("l0")) != nil {
		t.Error("readers see a change under way")
	}
	close(release)
	for range maxChanges {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
