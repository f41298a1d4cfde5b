package namedlimit

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"reflect"
	"testing"

	"cellserver/internal/limiter"
)

// deny returns an override of a key of limit a.
func deny(key string) KeyOverride {
	return KeyOverride{Limit: "a", Key: key, Policy: Policy{Constant: limiter.Deny}}
}

func mustOverride(t *testing.T, r *Registry, o KeyOverride) {
	t.Helper()
	if _, err := r.Override(o); err != nil {
		t.Fatal(err)
	}
}

// expectTold compares the next change.
func expectRecorded(t *testing.T, r *Registry, want Changes, wantAny bool) {
	t.Helper()
	got, has := r.TakeRecorded(true)
	if has != wantAny || !reflect.DeepEqual(got.Overrides, want.Overrides) || len(got.Definitions) != len(want.Definitions) || got.All != want.All ||
		(got.Definitions == nil) != (want.Definitions == nil) {
		t.Errorf("recorded %+v, %t, want %+v", got, has, want)
	}
}

// TestRecord: first everything, then changes in their order, once each; nothing while it is off.
func TestRecord(t *testing.T) {
	r := newRegistry()
	mustSet(t, r, definition("a", 5))
	mustOverride(t, r, deny("x"))
	expectRecorded(t, r, Changes{}, false)
	r.Record(true)
	expectRecorded(t, r, Changes{All: true, Definitions: make([]Definition, 1), Overrides: []KeyOverride{deny("x")}}, true)
	expectRecorded(t, r, Changes{}, false)
	ended := deny("x")
	ended.Removed, ended.Policy = true, Policy{}
	mustOverride(t, r, deny("y"))
	mustOverride(t, r, ended)
	expectRecorded(t, r, Changes{Overrides: []KeyOverride{deny("y"), ended}}, true)
	mustSet(t, r, definition("b", 5))
	expectRecorded(t, r, Changes{Definitions: make([]Definition, 2)}, true)
	for _, name := range []string{"a", "b"} {
		if _, err := r.Delete(name); err != nil {
			t.Fatal(err)
		}
	}
	expectRecorded(t, r, Changes{Definitions: []Definition{}}, true) // none are left
	for i := range maxRecorded + 1 {
		r.recorded.overrideLocked(&KeyOverride{Limit: "a", Key: fmt.Sprint(i)})
	}
	expectRecorded(t, r, Changes{All: true, Definitions: []Definition{}, Overrides: []KeyOverride{deny("y")}}, true)
	r.Record(false)
	mustSet(t, r, definition("c", 5))
	expectRecorded(t, r, Changes{}, false)
}

// follows has a registry follow all that another one tells.
func follows(t *testing.T, from, to *Registry) {
	t.Helper()
	if changes, has := from.TakeRecorded(true); has {
		if err := to.Apply(changes); err != nil {
			t.Error(err)
		}
	}
	if got, want := to.Everything(), from.Everything(); !reflect.DeepEqual(got.Definitions, want.Definitions) || len(got.Overrides) != len(want.Overrides) {
		t.Errorf("it has %+v, want %+v", got, want)
	}
}

// TestApply: changes replace what was there, decide at once, and are recorded again.
func TestApply(t *testing.T) {
	leader, replica, next := newRegistry(), newRegistry(), newRegistry()
	mustSet(t, replica, definition("old", 5))
	mustOverride(t, replica, KeyOverride{Limit: "old", Key: "k", Policy: Policy{Constant: limiter.Deny}})
	leader.Record(true)
	replica.Record(true)
	mustSet(t, leader, definition("a", 5))
	mustOverride(t, leader, deny("x"))
	follows(t, leader, replica)
	follows(t, replica, next)
	for _, r := range []*Registry{replica, next} {
		if n := named(r.Lookup([]byte("a")), "x"); n.Constant != limiter.Deny || !has(r, definition("a", 5)) || r.Lookup([]byte("old")) != nil {
			t.Errorf("x is decided by %+v", n)
		}
	}
	ended := deny("x")
	ended.Removed, ended.Policy = true, Policy{}
	mustOverride(t, leader, deny("y"))
	mustOverride(t, leader, ended)
	mustSet(t, leader, definition("a", 7))
	follows(t, leader, replica)
	follows(t, replica, next)
	for _, r := range []*Registry{replica, next} {
		l := r.Lookup([]byte("a"))
		if named(l, "x").Constant == limiter.Deny || named(l, "y").Constant != limiter.Deny || !has(r, definition("a", 7)) {
			t.Error("a change is not followed")
		}
	}
	if _, err := leader.Delete("a"); err != nil {
		t.Fatal(err)
	}
	follows(t, leader, replica)
	if replica.Lookup([]byte("a")) != nil {
		t.Error("a deleted limit is there")
	}
}

// failing is a data directory whose disk is full.
type failing struct{ calls int }

var errFull = errors.New("the disk is full")

func (*failing) Load() ([]Definition, error)                         { return nil, nil }
func (*failing) LoadOverrides() ([]KeyOverride, error)               { return nil, nil }
func (f *failing) Keep([]Definition) error                           { f.calls++; return errFull }
func (*failing) Check() error                                        { return nil }
func (f *failing) Rewrite([]Definition, iter.Seq[KeyOverride]) error { f.calls++; return errFull }
func (f *failing) KeepOverride(KeyOverride, int, iter.Seq[KeyOverride]) error {
	f.calls++
	return errFull
}

// TestFollowOnAFullDisk: what cannot be kept holds in memory, and the error says so.
func TestFollowOnAFullDisk(t *testing.T) {
	disk := &failing{}
	r := New(Config{Keeper: disk, Log: slog.New(slog.DiscardHandler)})
	for _, changes := range []Changes{
		{All: true, Definitions: []Definition{definition("a", 5)}, Overrides: []KeyOverride{deny("x")}},
		{Definitions: []Definition{definition("a", 6)}}, {Overrides: []KeyOverride{deny("y"), deny("z")}},
	} {
		before := disk.calls
		if err := r.Apply(changes); !errors.Is(err, errFull) || disk.calls == before {
			t.Errorf("%+v: %v", changes, err)
		}
	}
	if l := r.Lookup([]byte("a")); !has(r, definition("a", 6)) || r.NumOverrides() != 3 || named(l, "z").Constant != limiter.Deny {
		t.Errorf("it has %+v", r.Everything())
	}
}

func named(l *Limit, key string) *limiter.NamedLimit {
	n, _ := l.Named([]byte(key), &Moment{})
	return n
}
