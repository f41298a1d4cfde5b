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

// FitMaxClients returns maxClients: the limit of open files is unknown here.
func FitMaxClients(maxClients, _ int) int { return maxClients }
