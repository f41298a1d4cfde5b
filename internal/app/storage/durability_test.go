package storage

import (
	"context"
	"errors"
	"testing"

	"cellserver/internal/app/settings"
	"cellserver/internal/keep/persist/disk"
)

// TestEndWhileTheDirectoryIsHeld: a server that is ended as it starts does not wait for the data directory of
// another.
func TestEndWhileTheDirectoryIsHeld(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	held, err := disk.OpenOS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // nothing was written
	s := &Storage{options: &settings.Options{DataDir: dir}}
	if err := s.openDataDir(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the directory ended with %v", err)
	}
}
