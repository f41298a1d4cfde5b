package decide

import (
	"strconv"

	"cellserver/internal/limiter"
)

// Budget is a call about a hold of units under names of limits: all of them are held, settled or extended in
// one step, or none.
type Budget struct {
	whole
	Verb   HoldVerb
	All    []Request // of named limits; the quantities are units held or used
	ID     []byte    // nil of a Hold without one; then it is set
	TTLMs  int64     // of a Hold or an Extend
	Charge bool      // of a Hold

	// Own says that the limits are the caller's own. A Hold then holds Holds units of each where all
	// quantities fit, at most until the end of its window. A Settle debits where it finds no hold, too, and
	// need not have the limits of the Hold.
	Own   bool
	Holds int64

	Unknown []byte            // the name without a limit that Err is about, else nil
	Limited bool              // of a Hold: one of the requests is, and nothing is held
	State   limiter.HoldState // of a Settle or an Extend: what the hold was before

	Holding *Holding // of a Hold, with the results
	HeldID  []byte   // its id, for Settle: others may read the call while it is executed
}

// HoldVerb is what a Budget does to a hold.
type HoldVerb uint8

const (
	Hold HoldVerb = iota
	SettleHold
	ExtendHold
)

// Command returns the name of the command that is like a call.
func (v HoldVerb) Command() string {
	return [...]string{Hold: "CL.MRESERVE", SettleHold: "CL.MCOMMIT", ExtendHold: "CL.MEXTEND"}[v]
}

func (b *Budget) Settle() {
	b.done = true
	if b.Holding == nil {
		return
	}
	b.Limited, b.ID = b.Holding.Limited, b.HeldID
	for i := range b.All {
		b.All[i].take(&b.Holding.Batch[i])
	}
}

func (b *Budget) Words(lower bool) [][]byte {
	all := [][]byte{[]byte(b.Verb.Command())}
	add := func(word string) { all = append(all, []byte(word)) }
	number := func(n int64) { add(strconv.FormatInt(n, 10)) }
	if b.Verb != Hold {
		all = append(all, b.ID)
	}
	if b.Verb == ExtendHold {
		number(b.TTLMs)
	}
	number(int64(len(b.All)))
	for i := range b.All {
		q := &b.All[i]
		if b.Own {
			all = append(all, q.Words(lower)...)
			continue
		}
		if all = append(all, q.Limit, q.Key); b.Verb != ExtendHold {
			number(q.Quantity)
		}
	}
	if b.Verb != Hold {
		return all
	}
	add("TTL")
	number(b.TTLMs)
	if b.Charge {
		add("CHARGE")
	}
	if b.ID != nil {
		add("ID")
		all = append(all, b.ID)
	}
	return all
}

func (b *Budget) Bytes() int { return bytesOf(b.All) + len(b.ID) }
