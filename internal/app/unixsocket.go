package app

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// listenUnix listens on a unix socket with the given permissions, or the umask's if mode is 0. It replaces a
// stale socket, as a killed process leaves behind, but no other file.
func listenUnix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	listen := func() (net.Listener, error) {
		if mode != 0 {
			return listenWithMode(path, mode)
		}
		return (&net.ListenConfig{}).Listen(ctx, "unix", path)
	}
	l, err := listen()
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
	return listen()
}
