package namedlimit

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

func newRegistry() *Registry { return New(Config{Log: slog.New(slog.DiscardHandler)}) }

func definition(name string, capacity int64) Definition {
	return Definition{Name: name, Near: 0.5, Policy: Policy{Rules: []Rule{perMinute(capacity, 5), {Capacity: 100, Count: 100, PeriodSec: 86400}}}}
}

func perMinute(capacity, count int64) Rule {
	return Rule{Capacity: capacity, Count: count, PeriodSec: 60}
}

func of(rules ...Rule) Definition {
	return Definition{Name: "a", Near: DefaultNear, Policy: Policy{Rules: rules}}
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
	if !has(r, first) || l.Source != ByCommand || l.own.Rules[0].ID != 60e9 || l.own.Rules[0].Rule.Funnel.Capacity() != 5 || r.Lookup([]byte("b")) != nil {
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
	if !found || again || err != nil || err2 != nil || len(r.All()) != 0 {
		t.Errorf("deleted: %t, %v; again: %t, %v; %d are left", found, err, again, err2, len(r.All()))
	}
	for _, tt := range []struct {
		d    Definition
		want string
	}{
		{Definition{Name: ""}, "a limit's name must be"},
		{Definition{Name: strings.Repeat("n", 65)}, "a limit's name must be"},
		{Definition{Name: "ü"}, "a limit's name must be"},
		{Definition{Name: "a"}, "near must be above 0"},
		{Definition{Name: "a", Near: 1.5}, "near must be above 0 and at most 1, got 1.5"},
		{of(), "a limit must have 1 to 16 rules, got 0"},
		{of(make([]Rule, 17)...), "a limit must have 1 to 16 rules, got 17"},
		{of(Rule{Algorithm: FixedWindow, Capacity: 1, PeriodSec: 1, Name: "x"}, Rule{Algorithm: SlidingWindow, Capacity: 1, PeriodSec: 1, Name: "x"}), "two rules have the name x; give one of them another"},
		{of(perMinute(1, 1), perMinute(2, 2)), "two rules are 'funnel 60', by which their state is known; give one of them a name"},
		{of(perMinute(1, 0)), "count must be at least 1, got 0"},
		{of(Rule{Algorithm: TokenBucket, Count: 1, PeriodSec: 1}), "capacity must be at least 1, got 0"},
		{of(Rule{Algorithm: TokenBucket, Capacity: 1, Count: -1, PeriodSec: 1}), "refill must be at least 1, got -1"},
		{of(Rule{Algorithm: SlidingWindow, Capacity: 4097, PeriodSec: 1}), "max_count of a sliding_window must be at most 4096, got 4097"},
		{of(Rule{Algorithm: Quota, Calendar: calendar.Spec{Every: calendar.Day}}), "max_count must be at least 1"},
		{of(Rule{Algorithm: Quota, Capacity: 1, Calendar: calendar.Spec{Every: calendar.Day, Zone: "Europ/Berlin"}}), "unknown time zone 'Europ/Berlin'"},
		{of(Rule{Name: "a b", Capacity: 1, Count: 1, PeriodSec: 1}), "a rule's name must be"},
	} {
		if err := r.Set(tt.d); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %s", tt.d, err, tt.want)
		}
	}
}

// TestSetShadow changes nothing but the shadow, and fails if the rules are others.
func TestSetShadow(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	known, shadow, other := definition("a", 5), definition("a", 5), definition("a", 6)
	shadow.Shadow = true
	if err := r.SetShadow(known); err == nil || len(r.All()) != 0 {
		t.Errorf("an unknown limit: %v", err)
	}
	mustSet(t, r, known)
	if err := r.SetShadow(other); err == nil || !strings.Contains(err.Error(), "the limit 'a' does not have these rules; nothing was changed") || !has(r, known) {
		t.Errorf("other rules: %v", err)
	}
	for _, d := range []Definition{shadow, known} {
		if err := r.SetShadow(d); err != nil || !has(r, d) {
			t.Errorf("shadow %t: %v", d.Shadow, err)
		}
	}
}

func TestMaxBurst(t *testing.T) {
	t.Parallel()
	r := Rule{Capacity: 7}
	if burst, capacity := r.MaxBurst(funnel.Burst), r.MaxBurst(funnel.Capacity); burst != 6 || capacity != 7 {
		t.Errorf("got %d and %d", burst, capacity)
	}
}

type adder struct{}

func (adder) Count(into *atomic.Uint64, n uint64) { into.Add(n) }

// count counts requests with these results.
func count(n *limiter.NamedLimit, results ...funnel.Result) {
	var t limiter.Tally
	r := limiter.OfNamed(n)
	for i := range results {
		t.Add(&r, 1, &results[i], adder{})
	}
	t.Flush(adder{})
}

// allowed counts an allowed request.
func allowed(l *Limit) { count(l.own, funnel.Result{}) }

// TestCounts: counts go on across definitions, those of a rule while it is the same.
func TestCounts(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	for capacity := range int64(2) {
		d := definition("a", capacity+1)
		d.Shadow = capacity == 1
		mustSet(t, r, d)
		named := r.Lookup([]byte("a")).own
		if named.Shadow != d.Shadow || named.Rules[0].Rule.Funnel.Capacity() != capacity+1 {
			t.Errorf("got %+v", named)
		}
		count(named, funnel.Result{}, funnel.Result{Limited: true, Marks: 1}, funnel.Result{Marks: funnel.Shadowed | 3}, funnel.Result{Limited: true, Marks: 2},
			funnel.Result{Marks: funnel.MarksOf(0, 2)})
	}
	l := r.Lookup([]byte("a"))
	if got, want := l.Counts(), (Counts{Allowed: 4, Limited: 4, ShadowLimited: 2, Near: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got, want := l.RuleCounts(1), (Counts{Allowed: 4, Limited: 2, ShadowLimited: 2, Near: 2}); got != want {
		t.Errorf("counted %+v of the second rule, want %+v", got, want)
	}
	mustSet(t, r, of(Rule{Algorithm: FixedWindow, Capacity: 1, PeriodSec: 1}, Rule{Capacity: 1, Count: 1, PeriodSec: 86400}))
	l = r.Lookup([]byte("a"))
	if first, second := l.RuleCounts(0), l.RuleCounts(1); first != (Counts{}) || second.Allowed != 4 {
		t.Errorf("counted %+v and %+v after another rule", first, second)
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

func (k hangingKeeper) LoadOverrides() ([]KeyOverride, error)                      { return nil, nil }
func (k hangingKeeper) KeepOverride(KeyOverride, int, iter.Seq[KeyOverride]) error { return nil }
func (k hangingKeeper) Rewrite([]Definition, iter.Seq[KeyOverride]) error          { return nil }

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
	if r.Reloads() != (Reloads{}) || len(r.All()) != 0 || r.Lookup([]byte("l0")) != nil {
		t.Error("readers see a change under way")
	}
	close(release)
	for range maxChanges {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
