// Package peer defines the interface between connection drivers and sessions. Its types are values, safe for
// concurrent reading.
package peer

import (
	"net/netip"
)

// Peer describes the client of a connection.
type Peer struct {
	Addr      string // the client's address
	LocalAddr string // the server's
	Unix      bool   // a unix socket
	TLS       bool
	Door      Door
	CertName  string // common name of the client's certificate; "" for none
}

// Door is a client's protocol.
type Door uint8

// Doors; the last two are envoyproxy/ratelimit's ports.
const (
	RESP Door = iota
	HTTP
	GRPC
	RatelimitHTTP
	RatelimitDebug
)

// String returns the door's name, empty for RESP.
func (d Door) String() string {
	return [...]string{"", "http", "grpc", "ratelimit-http", "ratelimit-debug"}[d]
}

// Conn is a session's connection. Any goroutine may call it at any time, even after its end.
type Conn interface {
	// Wake makes the driver feed the session again, because it is no longer Waiting or has unsolicited
	// output.
	Wake()
	// Kill ends the connection at once.
	Kill()
	// Evict is Kill because of the client's memory.
	Evict()
}

// Session turns input into replies. It is for one goroutine at a time.
type Session interface {
	// Feed executes the commands at the front of in and appends their replies to out. The next call's in
	// begins with the bytes not consumed. Feed may change in, and must not keep it.
	Feed(in, out []byte) (consumed int, replies []byte, status Status)
	// HungUp reports that the client sends no more. A driver calls it while the session is Waiting, at most
	// once for each Hangup, so that the session may cancel its wait and call Wake. Earlier input is still
	// fed.
	HungUp(h Hangup)
	// Authenticated reports whether the client may execute commands.
	Authenticated() bool
	// Listens reports whether the client is in MONITOR or has subscribed, and so may be silent.
	Listens() bool
	// HoldsInput sets the bytes of an incomplete command held by the connection, and its buffers' free bytes.
	// A driver calls it after changes.
	HoldsInput(bytes, free int)
	// HoldsOutput sets the bytes of unread replies. Until Close any goroutine may call it.
	HoldsOutput(bytes int)
	// Name returns the client's name, even after Close.
	Name() string
	// Close is called once, at the end of the connection. After it only Name may be called.
	Close()
}

// Status tells a driver what to do after Feed.
type Status uint8

const (
	// NeedInput asks for another Feed with more input.
	NeedInput Status = iota
	// More asks to send the replies, then to call Feed again for the rest of the input, unless the connection
	// ends.
	More
	// Waiting means that the last command is not done, and asks for another Feed after Wake.
	Waiting
	// Close asks to send the replies, then to close the connection.
	Close
	// Abort asks to close the connection at once and send nothing.
	Abort
	// HandOver asks to send the replies, and to pass the connection with the rest of the input to whom else
	// can serve it. Only sessions of a door's connections return it.
	HandOver
)

// Hangup is a way of a client to stop sending.
type Hangup uint8

const (
	// Connected is the zero value: the client may still send.
	Connected Hangup = iota
	// HalfClosed is a FIN: the client may still read.
	HalfClosed
	// Reset is the end of both directions: replies are discarded.
	Reset
)

// UnauthenticatedOutput bounds the pending replies, in bytes, of a client before authentication.
const UnauthenticatedOutput = 1 << 10

// Origin returns the address that identifies a client's host: its IPv4 address, or the first 64 bits of its
// IPv6 address, as a host may use any in its network. ok is false over a unix socket.
func (p *Peer) Origin() (origin netip.Addr, ok bool) {
	if p.Unix {
		return netip.Addr{}, false
	}
	from, err := netip.ParseAddrPort(p.Addr)
	if err != nil {
		return netip.Addr{}, false
	}
	addr := from.Addr().Unmap()
	if addr.Is6() {
		prefix, _ := addr.WithZone("").Prefix(64) // never fails for IPv6
		addr = prefix.Addr()
	}
	return addr, true
}

// Network returns Origin as text, or else the client's whole address.
func (p *Peer) Network() string {
	if origin, ok := p.Origin(); ok {
		return origin.String()
	}
	return p.Addr
}
