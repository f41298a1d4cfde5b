//go:build !unix

package app

import (
	"errors"
	"io/fs"
	"net"
)

func listenWithMode(string, fs.FileMode) (net.Listener, error) {
	return nil, errors.New("--unixsocketperm is not supported on this system; protect the socket's directory")
}
