// Package storetest is what every store of limiter states must do, as a test that each of them runs:
//
//	func TestStore(t *testing.T) {
//		storetest.Test(t, func(t *testing.T) store.Store { return shard.New() })
//	}
//
// It also has stores for the tests of those who use one: Later and Bare.
//
// Nothing in it depends on how long anything takes. A store that never answers makes the test run into its timeout.
package storetest

import (
	"reflect"
	"runtime"
	"testing"

	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// Test holds a store to package store's contract. newStore returns an empty one, for each subtest another. What a store
// need not be able to do is tested if it can; otherwise the subtest is skipped, and says what is missing.
func Test(t *testing.T, newStore func(t *testing.T) store.Store) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, newStore(t)) })
	}
}

// reporter is what a check needs of a *testing.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// check is one subtest. Its store is empty.
type check struct {
	name string
	run  func(t reporter, s store.Store)
}

// alone is a check of one goroutine that takes long with the race detector, which finds nothing in it.
func alone(run func(t reporter, s store.Store)) func(t reporter, s store.Store) {
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
		exclusiveChecks(), boundedChecks(), modelChecks(), kindChecks(), stepChecks(), payloadChecks(), remoteChecks(),
	} {
		all = append(all, group...)
	}
	return all
}

// need returns what a store can do beyond store.Store, and skips the check if it cannot.
func need[C any](t reporter, s store.Store) C {
	t.Helper()
	c, ok := s.(C)
	if !ok {
		t.Skipf("the store is not a %v", reflect.TypeFor[C]())
	}
	return c
}

// concurrent is a reporter for the goroutines that a check starts: only its own may end the check.
type concurrent struct{ reporter }

// Fatalf ends the goroutine.
func (c concurrent) Fatalf(format string, args ...any) {
	c.Helper()
	c.Errorf(format, args...)
	runtime.Goexit()
}
