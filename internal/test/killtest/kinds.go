package killtest

import (
	"fmt"
	"strconv"
)

// kind is a key's limiter. The units of a key are a number that only its client changes.
type kind uint8

const (
	funnel kind = iota
	fixedWindow
	ring // an exact sliding window
	bucket
	leases // one unit a lease, each with its own token
)

// kindOf returns the kind of a client's key; every second one is a funnel.
func kindOf(key int) kind {
	if key%2 == 0 {
		return funnel
	}
	return fixedWindow + kind(key/2%4)
}

// Units stay within bounds at which no call is limited. Those of rings and leases are the server's.
const (
	maxBurst   = 400_000
	maxUnits   = maxBurst + 1
	maxEntries = 4096
	// periodSec exceeds the length of a test.
	periodSec = 10_000
)

func (k kind) max() int64 {
	if k == ring || k == leases {
		return maxEntries
	}
	return maxUnits
}

// charge returns a call that charges units of a kind that is charged by one command, or looks with none.
func (k kind) charge(key string, units int64) []any {
	switch k {
	case funnel:
		return []any{"CL.THROTTLE", key, maxBurst, 1, periodSec, units}
	case fixedWindow:
		return []any{"CL.FIXEDWINDOW", key, maxUnits, periodSec, units}
	default:
		return []any{"CL.SLIDINGWINDOW", key, maxEntries, periodSec, units}
	}
}

// change returns a call that adds or removes units, the remaining units, and the prefix of its reply.
func (k kind) change(key string, units, by int64) (args []any, left int64, want string) {
	switch k {
	case bucket:
		return changeBucket(key, units, by)
	case leases:
		return changeLeases(key, units, by)
	case fixedWindow: // stays without units after a refund
		by = max(by, -by)
	default:
	}
	left = max(units+by, 0)
	return k.charge(key, by), left, fmt.Sprintf("[0 %d %d -1 ", k.max(), k.max()-left)
}

func changeBucket(key string, units, by int64) (args []any, left int64, want string) {
	left = units + by
	if by > 0 || left < 0 {
		by = max(by, -by)
		return []any{"CL.BUCKET", "ADD", key, maxUnits, by}, units + by, strconv.FormatInt(by, 10)
	}
	return []any{"CL.BUCKET", "TAKE", key, maxUnits, -by}, left, fmt.Sprintf("[0 %d %d -1 ", maxUnits, left)
}

func changeLeases(key string, units, by int64) (args []any, left int64, want string) {
	if by > 0 || units == 0 {
		token := fmt.Sprint("holder", units)
		return []any{"CL.CONCURRENCY", "ACQUIRE", key, maxEntries, periodSec * 1000, token}, units + 1, fmt.Sprintf("[0 %d %d -1 ", maxEntries, maxEntries-units-1)
	}
	return []any{"CL.CONCURRENCY", "RELEASE", key, fmt.Sprint("holder", units-1)}, units - 1, "1"
}

// look returns a call whose reply reports a key's units.
func (k kind) look(key string) []any {
	switch k {
	case bucket:
		return []any{"CL.BUCKET", "LEN", key}
	case leases:
		return []any{"CL.CONCURRENCY", "LEN", key}
	default:
		return k.charge(key, 0)
	}
}

func unitsOf(reply any) (units int64, ok bool) {
	switch r := reply.(type) {
	case int64:
		return r, true
	case []any:
		if len(r) == 5 {
			limit, ok1 := r[1].(int64)
			left, ok2 := r[2].(int64)
			return limit - left, ok1 && ok2
		}
	}
	return 0, false
}
