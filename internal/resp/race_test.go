//go:build race

package resp

// raceEnabled: the race detector allocates where the program does not.
const raceEnabled = true
