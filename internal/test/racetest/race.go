//go:build race

// Package racetest tells tests whether the race detector is on.
package racetest

const Enabled = true
