//go:build race

package command

// raceEnabled: the race detector allocates where the program does not.
const raceEnabled = true
