//go:build race

// Package racetest tells tests whether the race detector is on, which takes time and memory that the program does
// not. It is a constant.
package racetest

// Enabled is whether the race detector is on.
const Enabled = true
