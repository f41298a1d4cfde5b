// Package peer is what a connection driver and a session know of each other: who the client is, and how bytes, ends
// and wake-ups pass between the two. Its types have no state of their own.
package peer

// Peer says who is at the other end of a connection.
type Peer struct {
	Addr      string // the client's address
	LocalAddr string // the server's
	Unix      bool   // over a unix socket
	TLS       bool
	CertName  string // the common name of the client's certificate, where it has shown one
}

// Conn is what a session asks of its connection. Any goroutine may call it at any time, also after the end.
type Conn interface {
	// Wake makes the driver feed the session again: one that was Waiting, or that has something to send unasked.
	Wake()
	// Kill ends the connection at once.
	Kill()
	// Evict is Kill for the memory that the client holds.
	Evict()
}

// Session is what a driver drives: bytes in, bytes out. Its methods are for one goroutine at a time.
type Session interface {
	// Feed executes the commands at the front of in and appends their replies to out. It returns how many bytes of
	// in it consumed, and out. What it has not consumed must stand at the front of in the next time. It may change in,
	// and must not keep it.
	Feed(in, out []byte) (consumed int, replies []byte, status Status)
	// HungUp says that the client sends no more. A driver watches for that while the session is Waiting, and calls it
	// at most once for either kind of Hangup, so that the session may give up what it waits for and call Wake. What the
	// client has sent before is still fed to it.
	HungUp(h Hangup)
	// Authenticated reports whether the client may execute commands.
	Authenticated() bool
	// Monitors reports whether the client waits to be sent things unasked, so that its silence means nothing.
	Monitors() bool
	// HoldsInput tells the session how many bytes its connection holds of a command that is not complete, and how many its
	// buffers have beside them. A driver calls it when that has changed.
	HoldsInput(bytes, free int)
	// HoldsOutput does the same for replies that the client has not read. Until Close any goroutine may call it.
	HoldsOutput(bytes int)
	// Name is what the client calls itself, also after Close.
	Name() string
	// Close is called once, when the connection has ended in whatever way, and nothing but Name after it.
	Close()
}

// Call is a command's name and its arguments, for a session that is not fed bytes.
type Call [][]byte

// Status says what a session wants of its driver after Feed.
type Status uint8

const (
	// NeedInput says that all that could be executed was; call Feed again with what was not consumed and more.
	NeedInput Status = iota
	// More says that there may be more to execute in the input; call Feed again when the replies are on their way,
	// unless the connection has to end.
	More
	// Waiting says that the last command is not done. Call Feed again after the session has called its connection's
	// Wake.
	Waiting
	// Close says to send the replies, then close the connection.
	Close
	// Abort says to close the connection at once and send nothing.
	Abort
)

// Hangup is a way in which a client stops sending.
type Hangup uint8

const (
	// HalfClosed is a FIN: the client sends no more, and may still read what it is sent.
	HalfClosed Hangup = iota
	// Reset is a connection that is gone in both directions: replies are thrown away.
	Reset
)

// UnauthenticatedOutput bounds the pending replies, in bytes, of a client that has yet to authenticate.
const UnauthenticatedOutput = 1 << 10
