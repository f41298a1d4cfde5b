//go:build !unix

package main

import "log/slog"

func fitMaxClients(maxClients, _ int, _ *slog.Logger) int { return maxClients }
