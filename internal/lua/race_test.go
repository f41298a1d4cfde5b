//go:build race

package lua

// raceEnabled: the race detector takes time and memory that the program does not.
const raceEnabled = true
