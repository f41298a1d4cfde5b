// Package lease is the arithmetic of concurrent holders: each has a lease, after which its place is free. A
// key's payload is its leases; it expires with the last one.
//
// It has no clock or state, and allocates only to grow payloads. Every function is safe for concurrent use
// and total: no argument makes it panic or overflow. A damaged payload counts as none. Payloads are changed
// in place and appended to.
package lease

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

const MaxHolders = 4096

const recordBytes = 16 // the holder's ID and the lease's end

// view is a payload's contents at a time.
type view struct {
	held    int64
	firstNs int64 // end of the first lease; the zero view has none
	lastNs  int64
	found   int // index of the holder, or -1
}

// look finds a holder among the valid leases.
func look(payload []byte, nowNs int64, id uint64) view {
	v := view{found: -1, firstNs: nowNs, lastNs: nowNs}
	if !sound(payload) {
		return v
	}
	for at := 0; at < len(payload); at += recordBytes {
		endNs := endAt(payload, at)
		if endNs <= nowNs {
			continue
		}
		if v.held == 0 || endNs < v.firstNs {
			v.firstNs = endNs
		}
		v.lastNs = max(v.lastNs, endNs)
		v.held++
		if binary.LittleEndian.Uint64(payload[at:]) == id {
			v.found = at
		}
	}
	return v
}

func sound(payload []byte) bool {
	return len(payload)%recordBytes == 0 && len(payload) <= MaxHolders*recordBytes
}

func endAt(payload []byte, at int) int64 {
	return int64(binary.LittleEndian.Uint64(payload[at+8:]))
}

func setEnd(payload []byte, at int, endNs int64) {
	binary.LittleEndian.PutUint64(payload[at+8:], uint64(endNs))
}

// Holders returns the number of holders.
func Holders(payload []byte, nowNs int64) int64 { return look(payload, nowNs, 0).held }

// Acquire gives a holder one of at most MaxHolders places until endNs; a present holder keeps its place. The
// result is limited if all are taken; RetryAfter and ResetAfter are the times until the first and the last
// lease end.
func Acquire(payload []byte, expiresNs, nowNs int64, id uint64, places, endNs int64, unit funnel.Unit) (newPayload []byte, newExpiresNs int64, r funnel.Result, changed bool) {
	places = max(0, min(places, MaxHolders))
	v := look(payload, nowNs, id)
	r = funnel.Result{Limit: places, RetryAfter: -1}
	switch {
	case v.found >= 0:
		changed = endAt(payload, v.found) != endNs
		setEnd(payload, v.found, endNs)
	case v.held >= places:
		r.Limited = true
		if places > 0 {
			r.RetryAfter = unit.Of(funnel.Since(nowNs, v.firstNs))
		}
	default:
		payload = binary.LittleEndian.AppendUint64(tidy(payload, nowNs), id)
		payload = binary.LittleEndian.AppendUint64(payload, uint64(endNs))
		changed = true
	}
	v = look(payload, nowNs, id)
	r.Remaining = max(0, places-v.held)
	r.ResetAfter = unit.Of(funnel.Since(nowNs, v.lastNs))
	if changed {
		expiresNs = v.lastNs
	}
	return payload, expiresNs, r, changed
}

// Renew moves a lease's end to endNs, which may free its place. It returns false if the holder has none.
func Renew(payload []byte, expiresNs, nowNs int64, id uint64, endNs int64) (newPayload []byte, newExpiresNs int64, found, changed bool) {
	v := look(payload, nowNs, id)
	if v.found < 0 {
		return payload, expiresNs, false, false
	}
	if changed = endAt(payload, v.found) != endNs; changed {
		setEnd(payload, v.found, endNs)
		payload = tidy(payload, nowNs)
		expiresNs = look(payload, nowNs, id).lastNs
	}
	return payload, expiresNs, true, changed
}

// tidy removes ended leases.
func tidy(payload []byte, nowNs int64) []byte {
	if !sound(payload) {
		return payload[:0]
	}
	kept := payload[:0]
	for at := 0; at < len(payload); at += recordBytes {
		if endAt(payload, at) > nowNs {
			kept = append(kept, payload[at:at+recordBytes]...)
		}
	}
	return kept
}

// Valid reports whether a key with this expiry can have the payload.
func Valid(payload []byte, expiresNs int64) bool {
	if len(payload) == 0 || !sound(payload) {
		return false
	}
	lastNs := endAt(payload, 0)
	for at := 0; at < len(payload); at += recordBytes {
		lastNs = max(lastNs, endAt(payload, at))
	}
	return lastNs == expiresNs
}

// Shift adds byNs to every time.
func Shift(payload []byte, byNs int64) {
	if !sound(payload) {
		return
	}
	for at := 0; at < len(payload); at += recordBytes {
		setEnd(payload, at, funnel.Shift(endAt(payload, at), byNs))
	}
}

// Each calls f for each lease, with its holder and the position of its end.
func Each(payload []byte, f func(id uint64, at int)) {
	if !sound(payload) {
		return
	}
	for at := 0; at < len(payload); at += recordBytes {
		f(binary.LittleEndian.Uint64(payload[at:]), at+8)
	}
}
