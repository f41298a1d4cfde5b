package main

import (
	"context"
	"os"

	"cellserver/lab/soak/internal/target"
)

// workIn creates a directory, and builds a server in it if none is given.
func workIn(ctx context.Context, binary *string, race bool) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "soak"); err != nil || *binary != "" {
		return dir, err
	}
	if *binary, err = target.Build(ctx, dir, race); err != nil {
		_ = os.RemoveAll(dir)
	}
	return dir, err
}
