// Package lease is the arithmetic of how many may hold something at once: each holder has a lease, and when that has ended its
// place is free again. A key's payload is the holders' leases; the key expires when the last one ends.
//
// It has no clock and no state, and allocates only where a payload grows. Every function is safe for concurrent use and total:
// no argument makes it panic or overflow. A payload that is damaged is as good as none. The payload is changed in
// place, and appended to.
package lease

import (
	"encoding/binary"

	"cellserver/internal/funnel"
)

// MaxHolders is the largest number of places.
const MaxHolders = 4096

const recordBytes = 16 // the holder's ID and when the lease ends

// view is what the payload says at a time.
type view struct {
	held    int64
	firstNs int64 // when the first lease ends; the zero view has none
	lastNs  int64
	found   int // the place of the holder that was looked for, or -1
}

// look looks for a holder among those whose leases have not ended.
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

// Holders returns how many have a place.
func Holders(payload []byte, nowNs int64) int64 { return look(payload, nowNs, 0).held }

// Acquire gives a holder one of so many places, until endNs. One that has a place keeps it until then. The result is limited if
// all places are taken; its RetryAfter is until the first lease ends, and its ResetAfter until the last does. There are no more than
// MaxHolders places.
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

// Renew has a holder's lease end at endNs; one that has ended by then frees the place. It is false if the holder has none.
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

// tidy removes the leases that have ended.
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

// Valid reports whether a payload is that of a key that expires then.
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
