package server

import (
	"net"
	"sync/atomic"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// Guest is a connection that a door serves. It counts as a client, within the same maxima. It is safe for
// concurrent use.
type Guest struct {
	Peer           peer.Peer
	server         *Server
	openedNs       int64
	received, sent atomic.Uint64
}

// Enter counts a connection to a door, or returns the refusal. The door itself refuses clients that
// Config.Admit would.
func (s *Server) Enter(nc net.Conn, door peer.Door) (g *Guest, refusal string) {
	p := peerOf(nc)
	p.Door = door
	if refusal := s.reserve(p); refusal != "" {
		return nil, refusal
	}
	s.accepted.Add(1)
	return &Guest{Peer: p, server: s, openedNs: s.config.Now()}, ""
}

// Received and Sent count bytes on the wire.
func (g *Guest) Received(bytes int) { g.received.Add(uint64(bytes)) }
func (g *Guest) Sent(bytes int)     { g.sent.Add(uint64(bytes)) }

// Leave counts the end of the connection. It is called once.
func (g *Guest) Leave(reason conn.Reason) {
	life := conn.Life{OpenedNs: g.openedNs}
	life.Because(reason)
	t := conn.Traffic{Received: g.received.Load(), Sent: g.sent.Load()}
	g.server.host.Ended(nil, g.Peer, &life, t)
	g.server.guestsReceived.Add(t.Received)
	g.server.guestsSent.Add(t.Sent)
	g.server.release(g.Peer)
}
