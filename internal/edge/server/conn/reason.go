package conn

// Reason is why a connection has ended.
type Reason uint8

// The reasons:
const (
	ReasonClient    Reason = iota // it has closed, or the way to it has
	ReasonSession                 // QUIT, or bytes that are no command
	ReasonIdle                    // Limits.IdleTimeout
	ReasonHandshake               // Limits.HandshakeTimeout, after TLS
	ReasonInput                   // a command half-sent: Limits.InputTimeout
	ReasonOutput                  // replies unread: Limits.OutputTimeout, or the bound before AUTH
	ReasonMemory                  // what the client makes the server hold
	ReasonKilled                  // CLIENT KILL, or a MONITOR that has fallen behind
	ReasonShutdown
	ReasonPanic
	ReasonSystem // could not be served
	reasonCount
)

// String returns the reason as logs and figures name it.
func (r Reason) String() string {
	return [...]string{"client", "session", "idle", "handshake", "input", "output", "memory", "killed", "shutdown", "panic", "system"}[r]
}

// Lingers reports whether a client that is sent its last replies for this reason may still be sending. Closing at
// once would then reset the connection, and could lose it the replies: it is told that no more come, and may close
// first.
func (r Reason) Lingers() bool { return r == ReasonSession || r == ReasonShutdown }
