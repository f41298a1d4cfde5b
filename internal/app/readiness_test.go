package app

import "testing"

// TestShuttingDownIsFinal: a server that has loaded while it shuts down is not ready again.
func TestShuttingDownIsFinal(t *testing.T) {
	a := &app{}
	for _, why := range []string{"loading the data directory", shuttingDown, ""} {
		a.setNotReady(why)
	}
	if err := a.ready(t.Context()); text(err) != shuttingDown {
		t.Errorf("it is not ready because of %q", text(err))
	}
}
