// Package transfer moves the states of keys between servers, data directories and files. States are absolute,
// such as a TAT in Unix nanoseconds, so moving twice is harmless; only the clocks' difference between two
// running servers shifts them.
//
// A file is a stream, which detects damage (StreamWriter documents the format), or CSV (CSVWriter).
//
// All types belong to one goroutine at a time.
package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// Entry is a key's state.
type Entry struct {
	Key   store.Key
	State limiter.State
}

// clone copies the memory that the next Read reuses.
func (e *Entry) clone() Entry {
	c := *e
	c.Key.Name, c.State.Payload = bytes.Clone(e.Key.Name), bytes.Clone(e.State.Payload)
	return c
}

// Writer takes entries. Close completes the output.
type Writer interface {
	Write(e Entry) error
	Close() error
}

// Reader returns entries, then io.EOF. A key's name and payload are valid until the next call.
type Reader interface {
	Read() (Entry, error)
}

var (
	// ErrNewer reports a stream of a later version.
	ErrNewer = errors.New("the dump has a newer format; use the version that wrote it, or a later one")
	// ErrDamaged reports a changed or truncated file.
	ErrDamaged = errors.New("the dump is damaged or truncated")
	// ErrNoDump reports a file of another type.
	ErrNoDump = errors.New("not a cellserver dump; a CSV file needs --format csv")
)

// Counts counts keys by outcome.
type Counts struct {
	Seen    int64            `json:"seen"`
	Written int64            `json:"written"`
	Kept    int64            `json:"kept"`    // the target's state was the same or later
	Expired int64            `json:"expired"` // before they could be written
	Others  map[string]int64 `json:"others"`  // not a limiter's, by reason
	Refused map[string]int64 `json:"refused"` // by a server, by error
}

// maxReasons bounds the memory that a strange server can take.
const maxReasons = 20

func count(in *map[string]int64, reason string) {
	if *in == nil {
		*in = map[string]int64{}
	}
	if _, ok := (*in)[reason]; !ok && len(*in) >= maxReasons {
		reason = "other reasons"
	}
	(*in)[reason]++
}

// Sum adds the counts of all reasons.
func Sum(byReason map[string]int64) (sum int64) {
	for _, n := range byReason {
		sum += n
	}
	return sum
}

// known returns how many keys have an outcome.
func (c *Counts) known() int64 {
	return c.Written + c.Kept + c.Expired + Sum(c.Others) + Sum(c.Refused)
}

// Print writes one count per line.
func (c *Counts) Print(w io.Writer, written string) error {
	b := fmt.Appendf(nil, "%-11s %d\n%-11s %d\n", "keys", c.Seen, written, c.Written)
	if c.Kept > 0 {
		b = fmt.Appendf(b, "%-11s %d: the target's state is the same or later\n", "left", c.Kept)
	}
	if c.Expired > 0 {
		b = fmt.Appendf(b, "%-11s %d\n", "expired", c.Expired)
	}
	for _, by := range []struct {
		what   string
		counts map[string]int64
	}{{"skipped", c.Others}, {"refused", c.Refused}} {
		for _, reason := range slices.Sorted(maps.Keys(by.counts)) {
			b = fmt.Appendf(b, "%-11s %d: %s\n", by.what, by.counts[reason], reason)
		}
	}
	_, err := w.Write(b)
	return err
}

// isKept reports whether a target's state stays when another arrives, so that no debt is forgiven: the one
// that expires later or, at the same time, the one that leaves less. ok is false for states of different
// types.
func isKept(held, other *limiter.State) (kept, ok bool) {
	isValue := held.Kind == limiter.Value
	switch {
	case isValue != (other.Kind == limiter.Value), held.Kind.Type() != other.Kind.Type():
		return false, false
	case isValue:
		return valueIsKept(held, other), true
	case held.Kind.Type() == limiter.Funnel.Type():
		a, _ := held.TAT(math.MinInt64) // never fails for a funnel
		b, _ := other.TAT(math.MinInt64)
		return a >= b, true
	case held.ExpiresNs != other.ExpiresNs:
		return held.ExpiresNs > other.ExpiresNs, true
	case bytes.Equal(held.Payload, other.Payload):
		return true, true
	}
	return held.Left() < other.Left(), true
}

// sameNs is the most by which the expiries of a value differ that was moved between clocks.
const sameNs = int64(10 * time.Millisecond)

// valueIsKept is isKept for values: at the same time, the higher counter stays, as most count up; else the
// target's.
func valueIsKept(held, other *limiter.State) bool {
	if later := held.ExpiresNs - other.ExpiresNs; later > sameNs || later < -sameNs {
		return later > 0
	}
	a, ok := resp.ParseInt(limiter.AppendValue(nil, held))
	b, okOther := resp.ParseInt(limiter.AppendValue(nil, other))
	return !ok || !okOther || a >= b
}
