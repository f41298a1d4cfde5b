package racetest

import (
	"os"
	"testing"
)

// SkipAlone skips a test of one goroutine, for which the race detector costs time and finds nothing. It runs
// without the detector.
func SkipAlone(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("has one goroutine, and takes long with the race detector")
	}
}

// OmitsLong reports whether to omit a long test that is worth nothing under the race detector: under it, and
// with -short, unless UNRACED is set. make test sets it for its short run without the detector.
func OmitsLong() bool { return Enabled || testing.Short() && os.Getenv("UNRACED") == "" }
