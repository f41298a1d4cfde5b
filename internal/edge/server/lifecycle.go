package server

import (
	"math"
	"time"

	"cellserver/internal/wire/peer"
)

// lifecycle is what is decided about a connection's life, the same by either driver: until when the client must have
// sent something, and why the connection ends. Time is an argument; to keep it is the drivers' part. Its methods are
// for one goroutine at a time.
type lifecycle struct {
	openedNs      int64
	halfSentNs    int64 // since when the client has left a long command half-sent; 0 if it has not
	reason        closeReason
	handshakeDone bool // the client was authenticated once
	monitors      bool // the client waits to be sent things unasked
}

// lingerTimeout is how long the input of a client that was told of the end is still read and thrown away.
const lingerTimeout = time.Second

// observe takes over what the session says of itself, which its input may have changed.
func (l *lifecycle) observe(s peer.Session) {
	l.handshakeDone = l.handshakeDone || s.Authenticated()
	l.monitors = s.Monitors()
}

// halfSentBytes is how much of a command may stay half-sent for as long as the client likes.
const halfSentBytes = 16 << 10

// fed notes how many bytes the session has consumed, how many it has left, and why.
func (l *lifecycle) fed(consumed, left int, status peer.Status, now func() int64) {
	switch {
	case left <= halfSentBytes || status != peer.NeedInput:
		l.halfSentNs = 0
	case consumed > 0 || l.halfSentNs == 0:
		l.halfSentNs = now()
	}
}

// inputDueNs returns until when a client that is waited for from now on must have sent something; 0 for ever.
func (l *lifecycle) inputDueNs(limits *Limits, nowNs int64) (dueNs int64) {
	if limits.IdleTimeout > 0 && !l.monitors {
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

// halfSentDueNs returns until when the client must have sent the rest of a command; 0 for ever.
func (l *lifecycle) halfSentDueNs(limits *Limits) (dueNs int64) {
	if limits.InputTimeout == 0 || l.halfSentNs == 0 || l.monitors {
		return 0
	}
	return later(l.halfSentNs, limits.InputTimeout)
}

// silenceReason tells which timeout has ended the wait for input.
func (l *lifecycle) silenceReason(limits *Limits, nowNs int64) closeReason {
	if limits.HandshakeTimeout > 0 && !l.handshakeDone && nowNs >= later(l.openedNs, limits.HandshakeTimeout) {
		return reasonHandshake
	}
	if dueNs := l.halfSentDueNs(limits); dueNs != 0 && nowNs >= dueNs {
		return reasonInput
	}
	return reasonIdle
}

// because notes why the connection ends; the first reason counts. That the client has gone is what is noted unless
// there is another reason.
func (l *lifecycle) because(r closeReason) {
	if l.reason == reasonClient {
		l.reason = r
	}
}

// later adds a duration, as long as it may be, to a time.
func later(nowNs int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-nowNs {
		return math.MaxInt64
	}
	return nowNs + int64(d)
}

// outputVerdict is what is to be done about replies that a client has not read.
type outputVerdict uint8

const (
	outputFits     outputVerdict = iota
	outputBlocks                 // the client is not read from, until no more than resumeBytes are left
	outputOverruns               // the connection is closed
)

// judgeOutput judges how many bytes of replies are pending.
func (l *Limits) judgeOutput(pendingBytes int, authenticated bool) outputVerdict {
	switch {
	case !authenticated && pendingBytes > peer.UnauthenticatedOutput:
		return outputOverruns
	case authenticated && pendingBytes > l.MaxOutputBytes:
		return outputBlocks
	}
	return outputFits
}

// resumeBytes is how much may be pending of a client that is read from again.
func (l *Limits) resumeBytes() int { return l.MaxOutputBytes / 2 }

// deadlineIn returns a time as net.Conn wants a deadline. It is an option of a socket and no decision: the runtime's
// poller has a clock of its own, and all that it is told of the server's is how long there is left.
func deadlineIn(left time.Duration) time.Time { return time.Now().Add(left) }
