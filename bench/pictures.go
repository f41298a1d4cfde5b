package main

import (
	"context"
	"fmt"
	"io"

	"cellserver/bench/internal/picture"
)

func runPictures(_ context.Context, args []string, stdout, _ io.Writer) error {
	fs := newFlags("pictures", "Draw how each limiter decides one and the same trace, and write that trace.", stdout)
	dir := fs.StringP("output", "o", "../docs/limiters", "directory to write into")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := picture.Write(*dir); err != nil {
		return fmt.Errorf("pictures: %w", err)
	}
	return nil
}
