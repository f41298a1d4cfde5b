package door

import (
	"net"

	"cellserver/internal/edge/server"
)

// Waiting returns how many requests wait for their body.
func (d *Door) Waiting() (n int) {
	d.waits.mu.Lock()
	defer d.waits.mu.Unlock()
	for _, l := range d.waits.hosts {
		n += l.Len()
	}
	return n
}

// PassAtEnd takes over a connection with replies while the door ends.
func (d *Door) PassAtEnd(nc net.Conn, g *server.Guest, replies []byte) {
	_ = d.passed.Close()
	d.takeOver(nc, g, nil, replies)
}
