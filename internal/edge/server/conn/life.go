package conn

import (
	"math"
	"time"

	"cellserver/internal/wire/peer"
)

// Life is what is decided about a connection's life, the same by either driver: until when the client must have
// sent something, and why the connection ends. Time is an argument; to keep it is the drivers' part. Its methods are
// for one goroutine at a time.
type Life struct {
	OpenedNs      int64
	HalfSentNs    int64 // since when the client has left a long command half-sent; 0 if it has not
	reason        Reason
	HandshakeDone bool // the client was authenticated once
	monitors      bool // the client waits to be sent things unasked
}

// LingerTimeout is how long the input of a client that was told of the end is still read and thrown away.
const LingerTimeout = time.Second

// Observe takes over what the session says of itself, which its input may have changed.
func (l *Life) Observe(s peer.Session) {
	l.HandshakeDone = l.HandshakeDone || s.Authenticated()
	l.monitors = s.Monitors()
}

// HalfSentBytes is how much of a command may stay half-sent for as long as the client likes.
const HalfSentBytes = 16 << 10

// Fed notes how many bytes the session has consumed, how many it has left, and why.
func (l *Life) Fed(consumed, left int, status peer.Status, now func() int64) {
	switch {
	case left <= HalfSentBytes || status != peer.NeedInput:
		l.HalfSentNs = 0
	case consumed > 0 || l.HalfSentNs == 0:
		l.HalfSentNs = now()
	}
}

// InputDueNs returns until when a client that is waited for from now on must have sent something; 0 for ever.
func (l *Life) InputDueNs(limits *Limits, nowNs int64) (dueNs int64) {
	if limits.IdleTimeout > 0 && !l.monitors {
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

// halfSentDueNs returns until when the client must have sent the rest of a command; 0 for ever.
func (l *Life) halfSentDueNs(limits *Limits) (dueNs int64) {
	if limits.InputTimeout == 0 || l.HalfSentNs == 0 || l.monitors {
		return 0
	}
	return Later(l.HalfSentNs, limits.InputTimeout)
}

// SilenceReason tells which timeout has ended the wait for input.
func (l *Life) SilenceReason(limits *Limits, nowNs int64) Reason {
	if limits.HandshakeTimeout > 0 && !l.HandshakeDone && nowNs >= Later(l.OpenedNs, limits.HandshakeTimeout) {
		return ReasonHandshake
	}
	if dueNs := l.halfSentDueNs(limits); dueNs != 0 && nowNs >= dueNs {
		return ReasonInput
	}
	return ReasonIdle
}

// Because notes why the connection ends; the first reason counts. That the client has gone is what is noted unless
// there is another reason.
func (l *Life) Because(r Reason) {
	if l.reason == ReasonClient {
		l.reason = r
	}
}

// Later adds a duration, as long as it may be, to a time.
func Later(nowNs int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-nowNs {
		return math.MaxInt64
	}
	return nowNs + int64(d)
}

// OutputVerdict is what is to be done about replies that a client has not read.
type OutputVerdict uint8

// The verdicts:
const (
	OutputFits     OutputVerdict = iota
	OutputBlocks                 // the client is not read from, until no more than ResumeBytes are left
	OutputOverruns               // the connection is closed
)

// JudgeOutput judges how many bytes of replies are pending.
func (l *Limits) JudgeOutput(pendingBytes int, authenticated bool) OutputVerdict {
	switch {
	case !authenticated && pendingBytes > peer.UnauthenticatedOutput:
		return OutputOverruns
	case authenticated && pendingBytes > l.MaxOutputBytes:
		return OutputBlocks
	}
	return OutputFits
}

// ResumeBytes is how much may be pending of a client that is read from again.
func (l *Limits) ResumeBytes() int { return l.MaxOutputBytes / 2 }

// DeadlineIn returns a time as net.Conn wants a deadline. It is an option of a socket and no decision: the runtime's
// poller has a clock of its own, and all that it is told of the server's is how long there is left.
func DeadlineIn(left time.Duration) time.Time { return time.Now().Add(left) }
