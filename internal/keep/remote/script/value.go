package script

import (
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// A state is a Redis string. A funnel's is its TAT as redis-cell writes it, a plain decimal number of
// nanoseconds, so that modules and cellservers can share keys. Any other is statePrefix and what
// limiter.AppendState writes, by the servers' clock. The time to live is rounded up to milliseconds, so that
// no debt is forgiven: what expires earlier than its key is absent nevertheless.
const statePrefix = "cl1:"

const (
	// headBytes are the first of a value, which say when it expires: the prefix, kind and time, or any TAT.
	headBytes = 20
	// expiresAt is where a value says when it expires, behind the prefix and the kind; a TAT is the whole
	// value.
	expiresAt = len(statePrefix) + 1
	// maxValueBytes is more than any value has.
	maxValueBytes = limiter.MaxPayloadBytes + 64
	// wholeBytes are read of a value in any case: most states are shorter.
	wholeBytes = 512
	// LargeBytes are more than a call may read or write that goes together with those of other keys.
	LargeBytes = 4 << 10
	// MaxStepBytes is how much the states of a step's keys may take, in all that it reads or writes.
	MaxStepBytes = 4 << 20
)

// ValueOf returns what is kept of a state.
func ValueOf(s *limiter.State) string {
	if s.Kind == limiter.Funnel {
		return strconv.FormatInt(s.ExpiresNs, 10)
	}
	return string(limiter.AppendState([]byte(statePrefix), s))
}

// ReadValue returns the state of a value, with a payload of its own. The error is limiter.ErrWrongType for
// what is none of ours.
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

// readTAT reads a decimal number as we, and redis-cell, write it: that of a counter is one, too, but of a
// time long ago.
func readTAT(v string) (tatNs int64, ok bool) {
	if len(v) == 0 || v[0] < '0' || v[0] > '9' || v[0] == '0' && len(v) > 1 {
		return 0, false
	}
	tatNs, err := strconv.ParseInt(v, 10, 64)
	return tatNs, err == nil
}

// ReadHead returns the kind of a value that begins so, and when it expires.
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

// pxOf returns how many milliseconds a state is to be kept for, and 0 for one that never expires.
func pxOf(s *limiter.State, serverNs int64, moreMs uint64) uint64 {
	if s.ExpiresNs == limiter.NeverNs {
		return 0
	}
	const nsPerMs = 1_000_000
	ns := funnel.Since(serverNs, s.ExpiresNs)
	return ns/nsPerMs + min(1, ns%nsPerMs) + moreMs
}

// Found is what a script has found at a key, and what that means.
type Found struct {
	Absent bool
	Value  string
	State  limiter.State
	Err    error // limiter.ErrWrongType
}

// FoundIn reads what the scripts return for a key: nothing, a value, or the number 0 for what is no string.
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
