package conn

import (
	"math"
	"time"

	"cellserver/internal/wire/peer"
)

// Life decides, the same for every driver, by when the client must send something and why a connection ends.
// Time is an argument; drivers keep the timers. It is not safe for concurrent use.
type Life struct {
	OpenedNs      int64
	HalfSentNs    int64 // when a long command became half-sent; 0 if none is
	reason        Reason
	HandshakeDone bool // the client has authenticated at least once
	listens       bool // the client is in MONITOR or has subscribed
}

// LingerTimeout bounds the reading and dropping of input after the last reply.
const LingerTimeout = time.Second

// Observe copies state of the session that its input may have changed.
func (l *Life) Observe(s peer.Session) {
	l.HandshakeDone = l.HandshakeDone || s.Authenticated()
	l.listens = s.Listens()
}

// HalfSentBytes may stay half-sent for any time.
const HalfSentBytes = 16 << 10

// Fed records how many bytes the session has consumed and left, and its status.
func (l *Life) Fed(consumed, left int, status peer.Status, now func() int64) {
	switch {
	case left <= HalfSentBytes || status != peer.NeedInput:
		l.HalfSentNs = 0
	case consumed > 0 || l.HalfSentNs == 0:
		l.HalfSentNs = now()
	}
}

// InputDueNs returns the deadline for input of a client that is waited for from now on; 0 is none.
func (l *Life) InputDueNs(limits *Limits, nowNs int64) (dueNs int64) {
	if limits.IdleTimeout > 0 && !l.listens {
		dueNs = Later(nowNs, limits.IdleTimeout)
	}
	if limits.HandshakeTimeout > 0 && !l.HandshakeDone {
		if handshakeNs := Later(l.OpenedNs, limits.HandshakeTimeout); dueNs == 0 || handshakeNs < dueNs {
			dueNs = handshakeNs
		}
	}
	if inputNs := l.halfSentDueNs(limits); inputNs != 0 && (dueNs == 0 || inputNs < dueNs) {
		dueNs = inputNs
	}
	return dueNs
}

// halfSentDueNs returns the deadline for the rest of a half-sent command; 0 is none.
func (l *Life) halfSentDueNs(limits *Limits) (dueNs int64) {
	if limits.InputTimeout == 0 || l.HalfSentNs == 0 || l.listens {
		return 0
	}
	return Later(l.HalfSentNs, limits.InputTimeout)
}

// SilenceReason returns which timeout ended the wait for input.
func (l *Life) SilenceReason(limits *Limits, nowNs int64) Reason {
	if limits.HandshakeTimeout > 0 && !l.HandshakeDone && nowNs >= Later(l.OpenedNs, limits.HandshakeTimeout) {
		return ReasonHandshake
	}
	if dueNs := l.halfSentDueNs(limits); dueNs != 0 && nowNs >= dueNs {
		return ReasonInput
	}
	return ReasonIdle
}

// Because records why the connection ends. The first reason counts; ReasonClient is the default.
func (l *Life) Because(r Reason) {
	if l.reason == ReasonClient {
		l.reason = r
	}
}

// Later returns nowNs + d, saturating.
func Later(nowNs int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-nowNs {
		return math.MaxInt64
	}
	return nowNs + int64(d)
}

// OutputVerdict says what to do about unread replies.
type OutputVerdict uint8

// The verdicts:
const (
	OutputFits     OutputVerdict = iota
	OutputBlocks                 // the client is not read from until at most ResumeBytes are pending
	OutputOverruns               // the connection is closed
)

// JudgeOutput judges the number of pending reply bytes.
func (l *Limits) JudgeOutput(pendingBytes int, authenticated bool) OutputVerdict {
	switch {
	case !authenticated && pendingBytes > peer.UnauthenticatedOutput:
		return OutputOverruns
	case authenticated && pendingBytes > l.MaxOutputBytes:
		return OutputBlocks
	}
	return OutputFits
}

// ResumeBytes is the pending output at which a blocked client is read from again.
func (l *Limits) ResumeBytes() int { return l.MaxOutputBytes / 2 }

// DeadlineIn converts a remaining time into a net.Conn deadline. The runtime's poller has its own clock.
func DeadlineIn(left time.Duration) time.Time { return time.Now().Add(left) }

// Reason is the cause of a connection's end.
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
	ReasonKilled                  // CLIENT KILL, or a client that fell behind with what it is sent
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
