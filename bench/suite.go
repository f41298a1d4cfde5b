package main

import (
	"context"
	"io"
)

func runSuite(context.Context, []string, io.Writer, io.Writer) error     { return nil }
func runReport(context.Context, []string, io.Writer, io.Writer) error    { return nil }
func runInProcess(context.Context, []string, io.Writer, io.Writer) error { return nil }
