package server

import (
	"io"
	"sync/atomic"
)

// Handshake is a connection's handshake of TLS. It has a turn whenever it waits for neither side of the
// network: strangers can have any number of them, so half of the processors compute them, and clients have
// the others. A nil Handshake is of a connection without TLS. Read and End belong to the goroutine that
// makes it.
type Handshake struct {
	turns chan struct{} // the server's
	has   atomic.Bool
	ended bool
}

// BeginHandshake returns a handshake, also for doors.
func (s *Server) BeginHandshake() *Handshake { return &Handshake{turns: s.handshakes} }

// Read reads from the client, and then waits for a turn.
func (h *Handshake) Read(b []byte, client io.Reader) (int, error) {
	if h == nil || h.ended {
		return client.Read(b)
	}
	h.leave()
	n, err := client.Read(b)
	if n > 0 {
		h.turns <- struct{}{}
		h.has.Store(true)
	}
	return n, err
}

// Write ends the turn, as a write may wait for the client.
func (h *Handshake) Write() {
	if h != nil {
		h.leave()
	}
}

// End is called when the handshake has ended.
func (h *Handshake) End() {
	h.leave()
	h.ended = true
}

func (h *Handshake) leave() {
	if h.has.Swap(false) {
		<-h.turns
	}
}
