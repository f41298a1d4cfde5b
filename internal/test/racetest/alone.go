package racetest

import "testing"

// SkipAlone skips a test of one goroutine, for which the race detector costs time and finds nothing. It runs
// without the detector.
func SkipAlone(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("has one goroutine, and takes long with the race detector")
	}
}
