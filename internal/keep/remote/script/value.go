package script

import (
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// A state is a Redis string. A funnel's is its TAT as redis-cell writes it, a decimal number of nanoseconds,
// so that modules and cellservers can share keys. Others are statePrefix and limiter.AppendState's bytes, by
// the servers' clock. The time to live is rounded up to milliseconds, to forgive no debt; a state may expire
// before its key.
const statePrefix = "cl1:"

const (
	// headBytes of a value contain its expiry: prefix, kind and time, or any TAT.
	headBytes = 20
	// expiresAt is the expiry's position after prefix and kind; a TAT is the whole value.
	expiresAt = len(statePrefix) + 1
	// maxValueBytes exceeds any value.
	maxValueBytes = limiter.MaxPayloadBytes + 64
	// wholeBytes of a value are always read: most states are shorter.
	wholeBytes = 512
	// LargeBytes is the limit for calls that share a pipeline with other keys.
	LargeBytes = 4 << 10
	// MaxStepBytes bounds the states of a step's keys, read and written.
	MaxStepBytes = 4 << 20
)

func ValueOf(s *limiter.State) string {
	if s.Kind == limiter.Funnel {
		return strconv.FormatInt(s.ExpiresNs, 10)
	}
	return string(limiter.AppendState([]byte(statePrefix), s))
}

// ReadValue returns a value's state with its own payload, or limiter.ErrWrongType for a foreign value.
func ReadValue(v string) (s limiter.State, err error) {
	encoded, ok := strings.CutPrefix(v, statePrefix)
	if !ok {
		s.ExpiresNs, ok = readTAT(v)
		return s, wrongUnless(ok)
	}
	s, rest, ok := limiter.ReadState([]byte(encoded))
	if !ok || len(rest) > 0 || s.Kind == limiter.Funnel {
		return limiter.State{}, limiter.ErrWrongType
	}
	return s, nil
}

// readTAT reads a decimal number as written by us and redis-cell. A counter's is a time long ago.
func readTAT(v string) (tatNs int64, ok bool) {
	if len(v) == 0 || v[0] < '0' || v[0] > '9' || v[0] == '0' && len(v) > 1 {
		return 0, false
	}
	tatNs, err := strconv.ParseInt(v, 10, 64)
	return tatNs, err == nil
}

// ReadHead returns the kind and expiry from a value's head.
func ReadHead(head string) (k limiter.Kind, expiresNs int64, ok bool) {
	encoded, ok := strings.CutPrefix(head, statePrefix)
	if !ok {
		expiresNs, ok = readTAT(head)
		return limiter.Funnel, expiresNs, ok
	}
	k, expiresNs, ok = limiter.ReadHead([]byte(encoded))
	return k, expiresNs, ok && k != limiter.Funnel
}

func wrongUnless(ok bool) error {
	if ok {
		return nil
	}
	return limiter.ErrWrongType
}

// pxOf returns the milliseconds to keep a state, 0 for one that never expires.
func pxOf(s *limiter.State, serverNs int64, moreMs uint64) uint64 {
	if s.ExpiresNs == limiter.NeverNs {
		return 0
	}
	const nsPerMs = 1_000_000
	ns := funnel.Since(serverNs, s.ExpiresNs)
	return ns/nsPerMs + min(1, ns%nsPerMs) + moreMs
}

// Found is a key's value as a script found it, and its meaning.
type Found struct {
	Absent bool
	Value  string
	State  limiter.State
	Err    error // limiter.ErrWrongType
}

// FoundIn reads a script's reply for a key: nothing, a value, or 0 for what is no string.
func FoundIn(reply any) Found {
	switch v := reply.(type) {
	case nil:
		return Found{Absent: true}
	case string:
		s, err := ReadValue(v)
		return Found{Value: v, State: s, Err: err}
	default:
		return Found{Err: limiter.ErrWrongType}
	}
}
