package server

import (
	"math"
	"time"

	"cellserver/internal/wire/peer"
)

// life decides, the same for every driver, how a connection goes on, by when its client must send something
// and why it ends. Time is an argument; drivers keep the timers. It is not safe for concurrent use.
type life struct {
	openedNs      int64
	halfSentNs    int64 // when a long command became half-sent; 0 if none is
	phase         phase
	hangup        peer.Hangup // what the session was told of its client's end; it only rises
	reason        Reason
	handshakeDone bool // the client has authenticated at least once
	listens       bool // the client is in MONITOR or has subscribed
}

// lingerTimeout bounds the reading and dropping of input after the last reply.
const lingerTimeout = time.Second

// observe copies state of the session that its input may have changed.
func (l *life) observe(s peer.Session) {
	l.handshakeDone = l.handshakeDone || s.Authenticated()
	l.listens = s.Listens()
}

// halfSentBytes of a RESP command may stay half-sent for any time.
const halfSentBytes = 16 << 10

// fed records how many bytes the session has consumed and left, how many may stay for any time, and its
// status.
func (l *life) fed(consumed, left, mayKeep int, status peer.Status, now func() int64) {
	switch {
	case left <= mayKeep || status != peer.NeedInput:
		l.halfSentNs = 0
	case consumed > 0 || l.halfSentNs == 0:
		l.halfSentNs = now()
	}
}

// inputDueNs returns the deadline for input of a client that is waited for from now on; 0 is no deadline.
func (l *life) inputDueNs(limits *Limits, nowNs int64) (dueNs int64) {
	if limits.IdleTimeout > 0 && !l.listens {
		dueNs = later(nowNs, limits.IdleTimeout)
	}
	if limits.HandshakeTimeout > 0 && !l.handshakeDone {
		if handshakeNs := later(l.openedNs, limits.HandshakeTimeout); dueNs == 0 || handshakeNs < dueNs {
			dueNs = handshakeNs
		}
	}
	if inputNs := l.halfSentDueNs(limits); inputNs != 0 && (dueNs == 0 || inputNs < dueNs) {
		dueNs = inputNs
	}
	return dueNs
}

// halfSentDueNs returns the deadline for the rest of a half-sent command; 0 is no deadline.
func (l *life) halfSentDueNs(limits *Limits) (dueNs int64) {
	if limits.InputTimeout == 0 || l.halfSentNs == 0 || l.listens {
		return 0
	}
	return later(l.halfSentNs, limits.InputTimeout)
}

// silenceReason returns which timeout ended the wait for input.
func (l *life) silenceReason(limits *Limits, nowNs int64) Reason {
	if limits.HandshakeTimeout > 0 && !l.handshakeDone && nowNs >= later(l.openedNs, limits.HandshakeTimeout) {
		return ReasonHandshake
	}
	if dueNs := l.halfSentDueNs(limits); dueNs != 0 && nowNs >= dueNs {
		return ReasonInput
	}
	return ReasonIdle
}

// because records why the connection ends. The first reason counts; ReasonClient is the default.
func (l *life) because(r Reason) {
	if l.reason == ReasonClient {
		l.reason = r
	}
}

// later returns nowNs + d, saturating.
func later(nowNs int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-nowNs {
		return math.MaxInt64
	}
	return nowNs + int64(d)
}

// outputVerdict says what to do about unread replies.
type outputVerdict uint8

// The verdicts:
const (
	outputFits     outputVerdict = iota
	outputBlocks                 // the client is not read from until at most resumeBytes are pending
	outputOverruns               // the connection is closed
)

// judgeOutput judges the number of pending reply bytes.
func (l *Limits) judgeOutput(pendingBytes int, authenticated bool) outputVerdict {
	switch {
	case !authenticated && pendingBytes > peer.UnauthenticatedOutput:
		return outputOverruns
	case authenticated && pendingBytes > l.MaxOutputBytes:
		return outputBlocks
	}
	return outputFits
}

// resumeBytes is the pending output at which a blocked client is read from again.
func (l *Limits) resumeBytes() int { return l.MaxOutputBytes / 2 }

// deadlineIn converts a remaining time into a net.Conn deadline. The runtime's poller has its own clock.
func deadlineIn(left time.Duration) time.Time { return time.Now().Add(left) }

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
