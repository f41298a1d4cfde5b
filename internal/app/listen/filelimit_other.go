//go:build !unix

package listen

func FitMaxClients(maxClients, _ int) int { return maxClients }
