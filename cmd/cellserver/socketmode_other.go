//go:build !unix

package main

import (
	"errors"
	"io/fs"
	"net"
)

func listenWithMode(string, fs.FileMode) (net.Listener, error) {
	return nil, errors.New("--unixsocketperm is not known on this system; guard the socket's directory")
}
