//go:build !unix

package listen

// FitMaxClients returns maxClients, as no limit of open files is known here.
func FitMaxClients(maxClients, _ int) int { return maxClients }
