package main

import (
	"context"
	"errors"
	"io"

	"cellserver/bench/internal/control"
)

// runControl serves a control, for bench run.
func runControl(ctx context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return usageError{errors.New("bench control requires one name: http, fasthttp or grpc")}
	}
	return control.Serve(ctx, args[0], stdout)
}
