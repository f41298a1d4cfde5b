//go:build unix

package app

import "syscall"

const (
	otherFiles = 48 // descriptors reserved for everything but clients
	loopFiles  = 2  // descriptors per event loop
)

// FitMaxClients lowers maxClients to fit the limit of open files, as Redis does.
func FitMaxClients(maxClients, ioThreads int) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxClients
	}
	fitting := int(min(uint64(limit.Cur), 1<<31)) - otherFiles - loopFiles*ioThreads //nolint:unconvert // signed on some systems
	if fitting >= maxClients || fitting < 1 {
		return maxClients
	}
	return fitting
}
