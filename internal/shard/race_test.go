//go:build race

package shard

// raceEnabled: the race detector takes memory that the program does not.
const raceEnabled = true
