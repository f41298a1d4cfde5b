// Package honest is clients that only want their calls decided, and an account of what they were allowed.
package honest

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// key is a limit and what was allowed by it. All limits drain in 16 minutes or longer and are full from the
// start: a server that evicts the keys that would expire soonest takes the keys of floods first.
type key struct {
	name     string
	maxBurst int64
	interval time.Duration // in which one unit leaks
	allowed  atomic.Int64
}

// Ledger is the account of a server's honest clients. It is safe for concurrent use.
type Ledger struct {
	began time.Time // before the first call
	keys  []*key
}

// NewLedger returns an account that begins now.
func NewLedger() *Ledger {
	l := &Ledger{began: time.Now()}
	for i := range 4 {
		l.keys = append(l.keys,
			&key{name: fmt.Sprintf("honest:slow:%d", i), maxBurst: 15, interval: time.Minute},
			&key{name: fmt.Sprintf("honest:steady:%d", i), maxBurst: 999, interval: time.Second},
			&key{name: fmt.Sprintf("honest:fast:%d", i), maxBurst: 99_999, interval: 10 * time.Millisecond},
		)
	}
	return l
}

// throttle returns a key's call.
func (k *key) throttle(quantity int64) []any {
	return []any{"CL.THROTTLE", k.name, k.maxBurst, 1000, int64(1000 * k.interval / time.Second), quantity}
}

// Violations returns a line for each key of which more was allowed than its limit allows, after the last
// call.
func (l *Ledger) Violations() []string {
	elapsed := time.Since(l.began)
	var lines []string
	for _, k := range l.keys {
		// The server may have read its clock a little later than ours was read, and clocks may differ by
		// their rate.
		most := k.maxBurst + 2 + int64(math.Ceil(1.001*float64(elapsed)/float64(k.interval)))
		if got := k.allowed.Load(); got > most {
			lines = append(lines, fmt.Sprintf("%s: %d units allowed, %d at most in %s", k.name, got, most, elapsed.Round(time.Second)))
		}
	}
	return lines
}

// Allowed returns the units that were allowed beyond the bursts.
func (l *Ledger) Allowed() int64 {
	var n int64
	for _, k := range l.keys {
		n += max(k.allowed.Load()-k.maxBurst-1, 0)
	}
	return n
}
