// Package shadow follows a running redis-cell's CL.THROTTLE calls by MONITOR, decides them with this server's
// arithmetic, and reports differences.
//
// MONITOR shows calls with their times but no replies. The reply follows from the state after the call:
// redis-cell keeps a funnel's TAT as a number, which a second connection GETs. The GETs appear in MONITOR's
// stream as well, in order of execution, so the calls that a value reflects are known.
//
// The source's clock reading for a call differs by microseconds from the time that MONITOR shows. A TAT that
// follows from an earlier one must be equal to the nanosecond. Only the TAT of an empty funnel depends on
// the clock and may be off by Options.Tolerance. A call closer than this to the time at which it is allowed
// may have been answered either way.
//
// A Run belongs to one goroutine.
package shadow

import (
	"context"
	"time"

	"cellserver/internal/funnel"
)

// Options configures a Run.
type Options struct {
	Source  Source
	Reading funnel.Reading // of max_burst
	// Tolerance bounds the difference of the source's clock readings from MONITOR's times.
	Tolerance time.Duration
	Rate      int              // keys read per second; 0 for no limit
	Timeout   time.Duration    // per exchange; 0 for 10 seconds; outstanding reads have half of it after the end
	MaxBytes  int              // of the remembered keys, estimated; 0 for 256 MiB
	Following func()           // called when the stream begins; may be nil
	Report    func(Difference) // called for each difference
	Progress  func(Summary)    // called now and then; may be nil
}

// Summary holds a Run's counts.
type Summary struct {
	Calls      int64 `json:"calls"`   // of CL.THROTTLE and its siblings with the same state
	Allowed    int64 `json:"allowed"` // by this server
	Limited    int64 `json:"limited"`
	Either     int64 `json:"either"`         // allowed or limited: the state is unknown or the time too close
	Refused    int64 `json:"errors"`         // for their arguments
	Compared   int64 `json:"compared"`       // calls on keys in known states
	Single     int64 `json:"alone"`          // of these, the only calls since their key's state was known
	Unknown    int64 `json:"unknown"`        // calls on keys in unknown states, only checked for being possible
	Missed     int64 `json:"not_compared"`   // calls on keys not read: too many, or the end came first
	OtherKinds int64 `json:"other_limiters"` // calls of other kinds, which are not compared
	Reads      int64 `json:"reads"`          // GETs
	Unread     int64 `json:"unread"`         // of these, without a TAT
	Different  int64 `json:"differences"`

	Keys       int           `json:"keys"`           // remembered
	ClockLeast time.Duration `json:"clock_least_ns"` // earliest source clock relative to MONITOR's times
	ClockMost  time.Duration `json:"clock_most_ns"`  // latest
	ClockReads int64         `json:"clock_calls"`    // calls with a known clock offset
	Took       time.Duration `json:"took_ns"`
}

// Nothing returns why no call was compared, and what to do, or "" if one was.
func (s *Summary) Nothing() string {
	switch {
	case s.Compared > 0:
		return ""
	case s.Calls+s.OtherKinds == 0:
		return "no CL.THROTTLE was seen; follow the Redis that the clients call, each primary of a cluster by itself, while they call it"
	case s.Calls == 0:
		return "only calls of limiters that redis-cell does not have were seen; follow the Redis that the clients send CL.THROTTLE to"
	case s.Missed == s.Calls:
		return "no key was read before the end; follow longer (--for), or raise --rate"
	case s.Unread > 0 && s.Unread == s.Reads:
		return "the keys that were called hold no TAT of redis-cell; follow a Redis in which no other program writes them"
	}
	return "no key was called again after its first call, which is only checked for being possible; follow longer (--for)"
}

// Difference is a key whose state differs from this server's.
type Difference struct {
	AtNs     int64   `json:"at_ns"` // time of the read, by the source
	DB       uint16  `json:"db"`
	Key      string  `json:"key"`
	Call     string  `json:"call"`  // the last one
	Calls    int     `json:"calls"` // since the state was known, or in all
	Expected []Range `json:"expected"`
	SeenNs   int64   `json:"seen_ns"`          // the TAT
	Absent   bool    `json:"absent,omitempty"` // no key
	Error    string  `json:"error,omitempty"`  // of the last call here; empty for none
	// The answer to a single call here and there: allowed, limited, or empty if unclear.
	Here  string `json:"here,omitempty"`
	There string `json:"there,omitempty"`
}

// Range is an inclusive range of TATs in Unix nanoseconds.
type Range struct {
	FromNs int64 `json:"from_ns"`
	ToNs   int64 `json:"to_ns"`
}

// Run follows a source until ctx is done, which is no error once the stream has begun. Calls before that are
// compared.
func Run(ctx context.Context, o Options) (Summary, error) {
	began := time.Now()
	f := newFollower(o)
	err := f.run(ctx)
	f.summary.Keys, f.summary.Took = len(f.keys.all), time.Since(began)
	if err == nil {
		return f.summary, nil
	}
	return f.summary, o.Source.explain(err)
}
