package limiter

import (
	"crypto/sha256"
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter/hold"
)

// A hold is units of a call whose true number is known later. It is charged to every rule of a named limit at
// once, as a request is, and kept beside the rules' states until it is settled.

var (
	// ErrTooManyHolds reports a key with the maximum of holds. Nothing has changed.
	ErrTooManyHolds = errors.New("limiter: the key has as many holds as it may")
	// ErrHoldTaken reports an id that another hold of the key has. Nothing has changed.
	ErrHoldTaken = errors.New("limiter: the id is another hold's")
	// ErrOtherPairs reports a hold of other pairs than those given. Nothing has changed.
	ErrOtherPairs = errors.New("limiter: the hold is of other pairs")
)

// HoldID is what is kept of a hold's id.
type HoldID = hold.ID

// HoldIDOf returns the first bytes of an id's SHA-256.
func HoldIDOf(id []byte) (h HoldID) {
	sum := sha256.Sum256(id)
	copy(h[:], sum[:])
	return h
}

// HoldCall tells calls apart.
type HoldCall struct {
	Pairs uint32 // a hash of the names and keys, in any order
	All   uint32 // a hash of all arguments
}

// Hold is what a request holds, where it is allowed.
type Hold struct {
	ID     HoldID
	Call   HoldCall
	TTLNs  int64
	Charge bool // the units stay charged when its time is over
	New    bool // the key cannot have a hold of that id
	// InWindow ends it with the window of a rule, if that is earlier.
	InWindow bool
}

// Holding returns a copy of a limit for one request, which holds its units. A request for none is a look. The
// request fails by ErrHoldTaken if the key has a hold of that id, open or overdue. A shadow that would deny
// the request charges it as a debit.
func (n *NamedLimit) Holding(h *Hold) *NamedLimit {
	as := *n
	as.hold = h
	return &as
}

// Holdable returns as many of the units as a hold may have.
func (n *NamedLimit) Holdable(units int64) int64 {
	if n.MaxHold > 0 {
		return min(units, n.MaxHold)
	}
	return units
}

// HoldState is what has become of a hold.
type HoldState uint8

const (
	NoHold      HoldState = iota // unknown, settled or forgotten
	OpenHold                     // its time is not over
	OverdueHold                  // its time is over, and it is not settled
)

// FindHold is a Step that finds a hold, and changes nothing.
type FindHold struct {
	Base
	ID HoldID

	State  HoldState
	Call   HoldCall
	LeftNs int64 // until its end
}

// Settle is a Step that ends a hold with the units used: it returns the rest to the rules' states that still
// exist, or debits the excess by the limit's present rules. Without a hold it changes nothing.
type Settle struct {
	Rule  Rule // OfNamed of what decides the key now, for the debit
	ID    HoldID
	Pairs uint32 // else ErrOtherPairs
	Used  int64

	State   HoldState     // before
	Held    int64         // units
	Debited int64         // units, by the Rule
	Spent   int64         // units: those used, but for what no rule takes
	Result  funnel.Result // of the debit
}

// Extend is a Step that moves the end of an open hold to TTLNs from now. Without one it changes nothing.
type Extend struct {
	ID    HoldID
	Pairs uint32 // else ErrOtherPairs
	TTLNs int64

	Open bool // before
}

// Ended counts holds whose time was over when a step was done.
type Ended = hold.Ended

// Notes are what a step finds to have become of holds, and what it has spent.
type Notes = hold.Notes

// Spent is units that Notes have, of a time.
type Spent = hold.Spent

// Held is a hold as one looks at it.
type Held = hold.Held
