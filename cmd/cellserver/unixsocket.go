package main

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// listenUnix listens on a unix socket. A socket file that nobody listens on any more, as a kill leaves behind, is
// replaced; any other file is not.
func listenUnix(ctx context.Context, config net.ListenConfig, path string) (net.Listener, error) {
	l, err := config.Listen(ctx, "unix", path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if nc, dialErr := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); dialErr == nil {
		_ = nc.Close()
		return nil, err
	} else if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if info, statErr := os.Lstat(path); statErr != nil || info.Mode()&os.ModeSocket == 0 {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return config.Listen(ctx, "unix", path)
}
