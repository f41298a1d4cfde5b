//go:build !unix

package app

// FitMaxClients returns maxClients: the limit of open files is unknown here.
func FitMaxClients(maxClients, _ int) int { return maxClients }
