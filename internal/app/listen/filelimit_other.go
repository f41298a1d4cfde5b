//go:build !unix

package main

func fitMaxClients(maxClients, _ int) int { return maxClients }
