package server

// closeReason is why a connection has ended.
type closeReason uint8

const (
	reasonClient    closeReason = iota // it has closed, or the way to it has
	reasonSession                      // QUIT, or bytes that are no command
	reasonIdle                         // Limits.IdleTimeout
	reasonHandshake                    // Limits.HandshakeTimeout, after TLS
	reasonInput                        // a command half-sent: Limits.InputTimeout
	reasonOutput                       // replies unread: Limits.OutputTimeout, or the bound before AUTH
	reasonMemory                       // what the client makes the server hold
	reasonKilled                       // CLIENT KILL, or a MONITOR that has fallen behind
	reasonShutdown
	reasonPanic
	reasonSystem // could not be served
	closeReasonCount
)

func (r closeReason) String() string {
	return [...]string{"client", "session", "idle", "handshake", "input", "output", "memory", "killed", "shutdown", "panic", "system"}[r]
}

// lingers reports whether a client that is sent its last replies for this reason may still be sending. Closing at
// once would then reset the connection, and could lose it the replies: it is told that no more come, and may close
// first.
func (r closeReason) lingers() bool { return r == reasonSession || r == reasonShutdown }
