//go:build !linux

package server

// newLoops returns fallback: this system has no event loops.
func newLoops(_ *Server, _ int, fallback driver) driver { return fallback }
