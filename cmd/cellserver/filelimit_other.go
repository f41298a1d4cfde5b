//go:build !unix

package main

import "log/slog"

func fitMaxClients(maxClients int, _ *slog.Logger) int { return maxClients }
