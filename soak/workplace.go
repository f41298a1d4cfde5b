package main

import (
	"context"
	"os"

	"cellserver/soak/internal/target"
)

// workIn makes a directory, which is to be removed, and builds a server in it, with the race detector or without, if none is named.
func workIn(ctx context.Context, binary *string, race bool) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "soak"); err != nil || *binary != "" {
		return dir, err
	}
	if *binary, err = target.Build(ctx, dir, race); err != nil {
		_ = os.RemoveAll(dir)
	}
	return dir, err
}
