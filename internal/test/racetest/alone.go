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
// where IsQuick.
func OmitsLong() bool { return Enabled || IsQuick() }

// IsQuick reports whether tests have -short, unless UNRACED is set, as in the only run of make verify without
// the race detector.
func IsQuick() bool { return testing.Short() && os.Getenv("UNRACED") == "" }
