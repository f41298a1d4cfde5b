//go:build !linux

package server

// newLoopDriver returns the driver that it was given: there are no event loops for this system.
func newLoopDriver(_ *Host, _ int, others Driver) Driver { return others }
