package server

import (
	"io"
	"runtime"
	"sync/atomic"
)

// Handshakes bounds the handshakes of TLS that are computed at once, as strangers can have any number of
// them: half of the processors, so that clients have the others.
type Handshakes struct{ turns chan struct{} }

func NewHandshakes() *Handshakes {
	return &Handshakes{make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// Handshake is a connection's own. It has a turn whenever it waits for neither side of the network. A nil
// Handshake is of a connection without TLS. Read and End belong to the goroutine that makes it.
type Handshake struct {
	of    *Handshakes
	has   atomic.Bool
	ended bool
}

func (h *Handshakes) Begin() *Handshake { return &Handshake{of: h} }

// Read reads from the client, and then waits for a turn.
func (h *Handshake) Read(b []byte, client io.Reader) (int, error) {
	if h == nil || h.ended {
		return client.Read(b)
	}
	h.leave()
	n, err := client.Read(b)
	if n > 0 {
		h.of.turns <- struct{}{}
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
		<-h.of.turns
	}
}
