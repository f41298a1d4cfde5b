package charges

import (
	"fmt"
	"strconv"
	"strings"
)

// kind is a key's limiter. Its units are a number that only its client changes.
type kind uint8

const (
	funnel kind = iota
	fixedWindow
	ring // an exact sliding window
	approxWindow
	bucket
	quota
	leases   // one unit a lease, each with its own token
	reserved // a funnel with reservations
	named    // a funnel under a named limit
	override // of a named key's limit: its units are a number in its rules
	kinds
)

// No call is limited: units stay within capacity, and drain so slowly that none is gone before the end.
const (
	capacity   = 2000
	most       = 1500
	periodSec  = 100_000
	limitName  = "soak"
	refundsOne = 8 // one charge in eight is refunded
)

// define defines the limit of all named keys.
func define() []any { return []any{"CL.LIMIT", "SET", limitName, "FUNNEL", capacity - 1, 1, periodSec} }

// stored returns the name of a key's state; "" if it is no key.
func (k kind) stored(key string) string {
	if k == named {
		return limitName + ":" + key
	}
	if k == override {
		return ""
	}
	return key
}

// change returns a call that changes units, and the units then. by is positive, or -1 for a refund.
func (k kind) change(key string, units, by int64) (args []any, left int64) {
	left = max(units+by, 0)
	switch k {
	case fixedWindow:
		return []any{"CL.FIXEDWINDOW", key, capacity, periodSec, by}, left
	case ring:
		return []any{"CL.SLIDINGWINDOW", key, capacity, periodSec, by}, left
	case approxWindow:
		return []any{"CL.SLIDINGWINDOW", key, capacity, periodSec, by, "APPROX"}, left
	case quota:
		return []any{"CL.QUOTA", key, capacity, "YEAR", by}, left
	case named:
		return []any{"CL.CHECK", limitName, key, by}, left
	case override: // each is another one
		if units >= most {
			return []any{"CL.LIMIT", "OVERRIDE", limitName, key, "DEL"}, 0
		}
		return []any{"CL.LIMIT", "OVERRIDE", limitName, key, "FUNNEL", capacity - 1 + units + 1, 1, periodSec}, units + 1
	case bucket:
		if by > 0 {
			return []any{"CL.BUCKET", "ADD", key, capacity, by}, left
		}
		return []any{"CL.BUCKET", "TAKE", key, capacity, units - left}, left
	case leases:
		if by > 0 {
			return []any{"CL.CONCURRENCY", "ACQUIRE", key, capacity, periodSec * 1000, "h" + strconv.FormatInt(units, 10)}, units + 1
		}
		return []any{"CL.CONCURRENCY", "RELEASE", key, "h" + strconv.FormatInt(units-1, 10)}, left
	case reserved:
		if by > 0 {
			return []any{"CL.RESERVE", key, capacity - 1, 1, periodSec, by, periodSec * 1000}, left
		}
	case funnel, kinds:
	}
	return []any{"CL.THROTTLE", key, capacity - 1, 1, periodSec, by}, left
}

// delete returns a call that sets units to 0.
func (k kind) delete(key string) []any {
	if k == override {
		return []any{"CL.LIMIT", "OVERRIDE", limitName, key, "DEL"}
	}
	return []any{"DEL", k.stored(key)}
}

// look returns a call whose reply tells the units.
func (k kind) look(key string) []any {
	switch k {
	case fixedWindow:
		return []any{"CL.FIXEDWINDOW", key, capacity, periodSec, 0}
	case ring:
		return []any{"CL.SLIDINGWINDOW", key, capacity, periodSec, 0}
	case approxWindow:
		return []any{"CL.SLIDINGWINDOW", key, capacity, periodSec, 0, "APPROX"}
	case quota:
		return []any{"CL.QUOTA", key, capacity, "YEAR", 0}
	case named, override:
		return []any{"CL.CHECK", limitName, key, 0}
	case bucket:
		return []any{"CL.BUCKET", "LEN", key}
	case leases:
		return []any{"CL.CONCURRENCY", "LEN", key}
	case funnel, reserved, kinds:
	}
	return []any{"CL.THROTTLE", key, capacity - 1, 1, periodSec, 0}
}

// units reads the reply to a look.
func (k kind) units(reply any) (units int64, err error) {
	switch r := reply.(type) {
	case int64:
		return r, nil
	case []any:
		if len(r) != 5 {
			break
		}
		limit, ok1 := r[1].(int64)
		left, ok2 := r[2].(int64)
		switch {
		case !ok1 || !ok2:
		case k == override:
			return limit - capacity, nil
		default:
			return limit - left, nil
		}
	}
	return 0, fmt.Errorf("the reply to a look is %v", reply)
}

// isRefusal reports whether an error reply promises that nothing was changed.
func isRefusal(err error) (code string, ok bool) {
	code, text, _ := strings.Cut(err.Error(), " ")
	switch code {
	case "READONLY", "NOREPLICAS", "MISCONF", "LOADING":
		return code, true
	}
	return code, strings.Contains(text, "nothing was changed")
}
