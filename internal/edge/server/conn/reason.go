package conn

// Reason is why a connection has ended.
type Reason uint8

// The reasons:
const (
	ReasonClient    Reason = iota // the client closed, or the network failed
	ReasonSession                 // QUIT or a protocol error
	ReasonIdle                    // Limits.IdleTimeout
	ReasonHandshake               // Limits.HandshakeTimeout, after TLS
	ReasonInput                   // Limits.InputTimeout: a half-sent command
	ReasonOutput                  // Limits.OutputTimeout, or the bound before AUTH: unread replies
	ReasonMemory                  // evicted for the memory it holds
	ReasonKilled                  // CLIENT KILL, or a MONITOR that fell behind
	ReasonShutdown
	ReasonPanic
	ReasonSystem // the system could not serve it
	reasonCount
)

// String returns the label of the reason in logs and metrics.
func (r Reason) String() string {
	return [...]string{"client", "session", "idle", "handshake", "input", "output", "memory", "killed", "shutdown", "panic", "system"}[r]
}

// Lingers reports whether the client may still be sending when it gets its last replies. Closing at once
// would reset the connection and could lose them, so the server closes only its side and waits.
func (r Reason) Lingers() bool { return r == ReasonSession || r == ReasonShutdown }
