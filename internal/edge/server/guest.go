package server

import (
	"net"
	"sync/atomic"

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

// GuestServer is how event loops serve a door's connections.
type GuestServer struct {
	NewSession func(p peer.Peer, conn peer.Conn) peer.Session
	Limits     Limits // of them, but for the maxima of clients; no byte may stay half-sent beyond InputTimeout
	// TakeOver is given a connection whose session hands it over, with input that it has not consumed and
	// replies that are not sent yet. It returns at once, with what ends the connection for those who know it
	// by the session that has ended.
	TakeOver func(nc net.Conn, g *Guest, input, replies []byte) (end func(Reason))

	end func(Reason) // of TakeOver; nil for a door
}

// ServeGuest has an event loop serve a door's connection, which it then owns. It returns false if none can.
func (s *Server) ServeGuest(nc net.Conn, g *Guest, by *GuestServer) bool {
	return s.driver.serveGuest(nc, g, by)
}

// Received counts bytes on the wire at once, as connections of proxies last for days.
func (g *Guest) Received(bytes int) {
	g.received.Add(uint64(bytes))
	g.server.guestsReceived.Add(uint64(bytes))
}

// Sent is Received for what is sent.
func (g *Guest) Sent(bytes int) {
	g.sent.Add(uint64(bytes))
	g.server.guestsSent.Add(uint64(bytes))
}

// HandshakeFailed counts and logs a failed handshake of TLS.
func (g *Guest) HandshakeFailed(err error) { g.server.handshakeFailed(err, g.Peer) }

// Leave counts the end of the connection. It is called once.
func (g *Guest) Leave(reason Reason) {
	g.server.left(g.Peer, g.openedNs, reason, traffic{received: g.received.Load(), sent: g.sent.Load()})
}
