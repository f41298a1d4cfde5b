package limiter

import (
	"encoding/binary"
	"iter"
	"math"

	"cellserver/internal/funnel"
)

// A payload of Concurrency is the leases of its holders, after which their places are free: each an ID and an
// end.
const (
	MaxHolders = 4096

	leaseBytes = 16
	leaseEnd   = 8 // position in a lease
)

// leases is Concurrency. Operations request its places.
type leases struct{ defaults }

func (leases) row() Row {
	return Row{Name: "cl-concurrency", Type: "cl-concurrency", Encoding: "leases", Command: "cl.concurrency", Sub: "acquire"}
}

func (leases) valid(s State) bool {
	lastNs, n := int64(math.MinInt64), 0
	for _, endNs := range eachLease(s.Payload) {
		lastNs = max(lastNs, endNs)
		n++
	}
	return n > 0 && lastNs == s.ExpiresNs
}

func (leases) shift(payload []byte, byNs int64) {
	for at, endNs := range eachLease(payload) {
		setLeaseEnd(payload, at, funnel.Shift(endNs, byNs))
	}
}

func (leases) clocked(s State, visit Visit) {
	visit(Part{}, ExpiresAt, LatestOfAll)
	for at := range eachLease(s.Payload) {
		visit(Part{Of: binary.LittleEndian.Uint64(s.Payload[at:])}, at+leaseEnd, Latest)
	}
}

// eachLease yields the position and the end of each lease, none of a damaged payload.
func eachLease(payload []byte) iter.Seq2[int, int64] {
	return func(yield func(at int, endNs int64) bool) {
		if len(payload)%leaseBytes != 0 || len(payload) > MaxHolders*leaseBytes {
			return
		}
		for at := 0; at < len(payload); at += leaseBytes {
			if !yield(at, int64(binary.LittleEndian.Uint64(payload[at+leaseEnd:]))) {
				return
			}
		}
	}
}

func setLeaseEnd(payload []byte, at int, endNs int64) {
	binary.LittleEndian.PutUint64(payload[at+leaseEnd:], uint64(endNs))
}

// holding is a payload's contents at a time.
type holding struct {
	held    int64
	firstNs int64 // end of the first lease, the time if there is none
	lastNs  int64
	found   int   // position of the holder's lease, or -1
	endNs   int64 // of the holder's lease
}

// holding finds a holder among the leases that have not ended.
func (s *State) holding(nowNs int64, id uint64) holding {
	h := holding{found: -1, firstNs: nowNs, lastNs: nowNs}
	for at, endNs := range eachLease(s.Payload) {
		if endNs <= nowNs {
			continue
		}
		if h.held == 0 || endNs < h.firstNs {
			h.firstNs = endNs
		}
		h.lastNs = max(h.lastNs, endNs)
		h.held++
		if binary.LittleEndian.Uint64(s.Payload[at:]) == id {
			h.found, h.endNs = at, endNs
		}
	}
	return h
}

func (o *Operation) doConcurrency(s *State, nowNs int64) (changed bool, err error) {
	if !s.begin(nowNs, Concurrency) {
		return false, ErrWrongType
	}
	h := s.holding(nowNs, o.ID)
	if o.Verb == Holders {
		o.Count = h.held
		return false, nil
	}
	endNs := nowNs // of the released lease
	if o.Verb != Release {
		endNs = funnel.After(nowNs, uint64(max(o.TTLNs, 0)))
	}
	if changed = h.found >= 0 && h.endNs != endNs; changed {
		setLeaseEnd(s.Payload, h.found, endNs)
	}
	if o.Verb == Acquire {
		changed = o.acquire(s, &h, nowNs, endNs) || changed
	} else if o.Count = oneIf(h.found >= 0); changed {
		s.dropEndedLeases(nowNs)
	}
	h = s.holding(nowNs, o.ID)
	if changed {
		s.ExpiresNs = h.lastNs
	}
	if o.Verb == Acquire {
		o.Result.Remaining, o.Result.ResetAfter = max(0, o.Result.Limit-h.held), o.Unit.Of(funnel.Since(nowNs, h.lastNs))
	}
	return changed, nil
}

// acquire gives a holder without a place one of at most MaxHolders until endNs. The result is limited if all
// are taken; RetryAfter is the time until the first lease ends.
func (o *Operation) acquire(s *State, h *holding, nowNs, endNs int64) (added bool) {
	places := max(0, min(o.Max, MaxHolders))
	o.Result = funnel.Result{Limit: places, RetryAfter: -1, Limited: h.found < 0 && h.held >= places}
	if o.Result.Limited && places > 0 {
		o.Result.RetryAfter = o.Unit.Of(funnel.Since(nowNs, h.firstNs))
	}
	if o.Result.Limited || h.found >= 0 {
		return false
	}
	s.dropEndedLeases(nowNs)
	s.Payload = binary.LittleEndian.AppendUint64(s.Payload, o.ID)
	s.Payload = binary.LittleEndian.AppendUint64(s.Payload, uint64(endNs))
	return true
}

func (s *State) dropEndedLeases(nowNs int64) {
	kept := s.Payload[:0]
	for at, endNs := range eachLease(s.Payload) {
		if endNs > nowNs {
			kept = append(kept, s.Payload[at:at+leaseBytes]...)
		}
	}
	s.Payload = kept
}
