//go:build !unix

package racetest

import "testing"

// OneAtATime does nothing where files have no locks like those of unix.
func OneAtATime(testing.TB) {}
