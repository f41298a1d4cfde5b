package server

import (
	"time"

	"cellserver/internal/wire/peer"
)

// Limits bounds what clients may take. SetLimits changes it while the server runs; a duration of 0 is no
// limit.
type Limits struct {
	MaxClients int
	// MaxClientsPerAddress bounds the clients of one IPv4 address or IPv6 /64; 0 is no limit. Clients on unix
	// sockets do not count.
	MaxClientsPerAddress int
	MaxOutputBytes       int           // unread replies; beyond it the client is not read from
	OutputTimeout        time.Duration // time a client may stay beyond MaxOutputBytes
	InputTimeout         time.Duration // time more than 16 KiB of a command may stay half-sent
	IdleTimeout          time.Duration // silence of a client that is not in MONITOR and has not subscribed
	HandshakeTimeout     time.Duration // time for TLS and, where required, AUTH
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
