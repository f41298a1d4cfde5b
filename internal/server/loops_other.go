//go:build !linux

package server

// withLoops returns the driver that it was given: there are no event loops for this system.
func withLoops(_ *Server, _ int, others driver) driver { return others }
