// Package shadow follows the CL.THROTTLE calls of a running redis-cell by MONITOR, decides the same calls with this server's
// own arithmetic, and reports where the two differ.
//
// MONITOR shows calls and their times, and no replies. What a call was answered shows in the state behind it: redis-cell
// keeps a funnel's TAT as a number, which GET returns, and of which every reply is a function. A second connection reads the
// keys that were called. Its own GETs are in MONITOR's stream, too, which is in the order of execution: so it is known
// which calls a value reflects, however many there are meanwhile.
//
// The source reads its clock for each call, some microseconds before or after the time that MONITOR shows. Where a TAT follows
// from an earlier one, the two must be equal to the nanosecond. Only the TAT of a funnel that was empty follows from the clock: it may be off by
// Options.Tolerance. A call that is closer than that to the time at which it is allowed may have been answered either way.
//
// A Run belongs to one goroutine.
package shadow

import (
	"context"
	"time"

	"cellserver/internal/funnel"
)

// Options says what to follow, and how.
type Options struct {
	Source  Source
	Reading funnel.Reading // of max_burst
	// Tolerance is how far the source's reading of its clock may be from the time that MONITOR shows.
	Tolerance time.Duration
	Rate      int              // how many keys are read a second, at most; 0 for no bound
	Timeout   time.Duration    // of each exchange; 0 for 10 seconds
	MaxBytes  int              // that the keys take whose states are remembered, about; 0 for 256 MiB
	Following func()           // is called when the stream has begun; may be nil
	Report    func(Difference) // is called with each difference
	Progress  func(Summary)    // is called now and then; may be nil
}

// Summary is what was seen.
type Summary struct {
	Calls     int64 `json:"calls"`   // of CL.THROTTLE and its siblings with the same state
	Allowed   int64 `json:"allowed"` // of these, what is allowed here
	Limited   int64 `json:"limited"`
	Either    int64 `json:"either"`         // allowed or limited, because the key's state was not known or the time too close
	Refused   int64 `json:"errors"`         // with an error, for their arguments
	Compared  int64 `json:"compared"`       // calls on keys whose state was known
	Alone     int64 `json:"alone"`          // of these, calls that were the only ones since their key's state was known
	Unknown   int64 `json:"unknown"`        // calls on keys whose state was not known: they were only checked for being possible
	Missed    int64 `json:"not_compared"`   // calls on keys that were not read, for there were too many, or before the end
	Others    int64 `json:"other_limiters"` // calls of limiters of other kinds, which are not compared
	Reads     int64 `json:"reads"`          // GETs
	Unread    int64 `json:"unread"`         // of these, those that returned no TAT
	Different int64 `json:"differences"`

	Keys       int           `json:"keys"`           // whose state is remembered
	ClockLeast time.Duration `json:"clock_least_ns"` // by how much the source's clock was before MONITOR's times
	ClockMost  time.Duration `json:"clock_most_ns"`  // and behind them
	ClockReads int64         `json:"clock_calls"`    // of how many calls that is known
	Took       time.Duration `json:"took_ns"`
}

// Difference is a key whose state is not what it would be here.
type Difference struct {
	AtNs     int64   `json:"at_ns"` // when it was read, by the source
	DB       uint16  `json:"db"`
	Key      string  `json:"key"`
	Call     string  `json:"call"`  // the last one
	Calls    int     `json:"calls"` // since the state was known, or ever
	Expected []Range `json:"expected"`
	SeenNs   int64   `json:"seen_ns"`          // the TAT
	Absent   bool    `json:"absent,omitempty"` // there was no key
	Error    string  `json:"error,omitempty"`  // what is wrong with the last call here; empty if nothing is
	// What a call that was alone was answered here and there: allowed, limited, or empty if that is not clear.
	Here  string `json:"here,omitempty"`
	There string `json:"there,omitempty"`
}

// Range is TATs from one to another, in Unix nanoseconds.
type Range struct {
	FromNs int64 `json:"from_ns"`
	ToNs   int64 `json:"to_ns"`
}

// drainTimeout is how long after its end a Run waits for what it has asked.
const drainTimeout = 5 * time.Second

// Run follows a source until ctx is done, which is no error once the stream has begun. What was called before that is compared.
func Run(ctx context.Context, o Options) (Summary, error) {
	began := time.Now()
	f := newFollower(o)
	err := f.run(ctx)
	f.summary.Keys, f.summary.Took = len(f.known.keys), time.Since(began)
	if err == nil {
		return f.summary, nil
	}
	return f.summary, o.Source.explain(err)
}
