// Package storetest is the conformance test of stores of limiter states:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t *testing.T) store.Store { return shard.New() })
//	}
//
// It also has stores for tests: Later, Bare and NewRemote.
//
// Nothing depends on timing. A store that never answers runs into the test's time-out.
package storetest

import (
	"reflect"
	"runtime"
	"sync"
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// Test checks a store against package store's contract. newStore returns an empty store for each subtest.
// Subtests of missing capabilities are skipped with a reason.
func Test(t *testing.T, newStore func(t *testing.T) store.Store) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
	}
}

// reporter is the used part of a *testing.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// check is a subtest on an empty store.
type check struct {
	name string
	run  func(t reporter, s store.Store)
}

// unraced marks a check of one goroutine, which is skipped under the race detector.
func unraced(run func(t reporter, s store.Store)) func(t reporter, s store.Store) {
	return func(t reporter, s store.Store) {
		if racetest.Enabled {
			t.Skipf("has one goroutine, and takes long with the race detector")
		}
		run(t, s)
	}
}

func checks() []check {
	var all []check
	for _, group := range [][]check{
		vectorChecks(), keyChecks(), pendingChecks(), walkerChecks(), watcherChecks(), transactionChecks(), releasedChecks(),
		exclusiveChecks(), boundedChecks(), modelChecks(), kindChecks(), payloadChecks(), remoteChecks(),
	} {
		all = append(all, group...)
	}
	return all
}

// need returns a capability, or skips the check.
func need[C any](t reporter, s store.Store) C {
	t.Helper()
	c, ok := s.(C)
	if !ok {
		t.Skipf("the store is not a %v", reflect.TypeFor[C]())
	}
	return c
}

// concurrent is a reporter for goroutines of a check: only the check's own may end it.
type concurrent struct{ reporter }

// together runs callers of a check at once, and waits for them.
func together(t reporter, callers int, call func(t reporter, caller int)) {
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() { call(concurrent{t}, g) })
	}
	wg.Wait()
}

func (c concurrent) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	runtime.Goexit()
}
