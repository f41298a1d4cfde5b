package racetest

import "testing"

// SkipAlone skips a test of one goroutine that takes long with the race detector, which finds nothing in it. It runs without.
func SkipAlone(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("has one goroutine, and takes long with the race detector")
	}
}
