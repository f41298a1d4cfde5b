package reserve

import "cellserver/internal/funnel"

// A dated ID has the microsecond at which its reservation ends, and the lowest bits to tell those apart that
// end at once.
const (
	idBits   = 12
	idMask   = 1<<idBits - 1
	mostEnds = 1<<(64-idBits) - 1 // in the year 2112
	nsPerUs  = 1000
	wordBits = 64
)

// MaxUndated is the largest number that an ID is dated from.
const MaxUndated = idMask

// EndNs returns the end of a reservation with a dated ID: a whole microsecond.
func EndNs(nowNs, ttlNs int64) int64 {
	endNs := funnel.After(nowNs, uint64(max(ttlNs, 0)))
	if rest := endNs % nsPerUs; rest > 0 {
		endNs = funnel.After(endNs, uint64(nsPerUs-rest))
	}
	return endNs
}

func IsDated(id uint64) bool { return id > MaxUndated }

func DatedID(endNs int64, number uint64) uint64 {
	return min(uint64(max(endNs/nsPerUs, 1)), mostEnds)<<idBits | number&idMask
}

// FreeID returns a dated ID that no open reservation has: the given one, or the next of the same end. There
// are as many as a key may have open reservations.
func (l *Ledger) FreeID(id uint64) uint64 {
	var used [(idMask + 1) / wordBits]uint64
	for i := range l.Len() {
		if of := l.at(i).id(); of&^idMask == id&^idMask {
			used[of&idMask/wordBits] |= 1 << (of % wordBits)
		}
	}
	for range MaxOpen {
		if used[id&idMask/wordBits]>>(id%wordBits)&1 == 0 {
			break
		}
		id = id&^idMask | (id+1)&idMask
	}
	return id
}

// Due reports whether a dated ID's reservation has ended.
func Due(id uint64, nowNs int64) bool { return IsDated(id) && int64(id>>idBits)*nsPerUs <= nowNs }
