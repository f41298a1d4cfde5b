package ask

import "cellserver/internal/limiter"

// maxHolds bounds the holds of each sort in an Answer.
const maxHolds = 20

// Holds are a key's holds of one sort.
type Holds struct {
	Number int
	Units  int64
	First  []limiter.Held // up to maxHolds, the first charged first
}

func (h *Holds) add(of limiter.Held) {
	h.Number++
	h.Units += of.Units
	if len(h.First) < maxHolds {
		h.First = append(h.First, of)
	}
}

// HoldsOf returns the open and the overdue holds of a key.
func (a *Answer) HoldsOf(nowNs int64) (open, overdue Holds) {
	for _, of := range limiter.LookAtHolds(&a.State, nowNs) {
		if of.Overdue {
			overdue.add(of)
		} else {
			open.add(of)
		}
	}
	return open, overdue
}
