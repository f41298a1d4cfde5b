package expect

import (
	"fmt"
	"time"
)

// Increment is a call of INCREX. By is a number, or nil; Lower and Upper are for no bound.
type Increment struct {
	By, Lower, Upper *float64
	Float, Saturate  bool
	Expiry           string // EX, PX, EXAT, PXAT, PERSIST, or empty
	At               int64  // for EX, PX, EXAT, PXAT
	ENX              bool
}

// increment is a call on the key of those before it, and what follows from it.
type increment struct {
	Increment
	value, added   float64
	over, mostLeft int64 // seconds that the key then lives; -1 without expiry
}

func increments(now time.Time) []increment {
	n := func(f float64) *float64 { return &f }
	const kept, forever = 1000, -1
	return []increment{
		{Increment{}, 1, 1, -2, forever},
		{Increment{By: n(5), Lower: n(0), Upper: n(10)}, 6, 5, -2, forever},
		{Increment{By: n(5), Upper: n(10), Expiry: "EX", At: kept}, 6, 0, -2, forever}, // declined, with its expiry
		{Increment{By: n(5), Upper: n(10), Saturate: true, Expiry: "EX", At: kept}, 10, 4, 0, kept},
		{Increment{By: n(-50), Lower: n(2), Saturate: true, Expiry: "PX", At: 9_000_000, ENX: true}, 2, -8, 0, kept},
		{Increment{By: n(1), Expiry: "EXAT", At: now.Unix() + 20_000}, 3, 1, kept, 20_000},
		{Increment{By: n(1), Expiry: "PXAT", At: now.UnixMilli() + 40_000_000}, 4, 1, 20_000, 40_000},
		{Increment{By: n(1), Expiry: "PERSIST"}, 5, 1, -2, forever},
		{Increment{By: n(1), Expiry: "EX", At: kept, ENX: true}, 6, 1, 0, kept},
		{Increment{By: n(0.5), Float: true, Lower: n(0), Upper: n(7.5)}, 6.5, 0.5, 0, kept},
		{Increment{By: n(10), Float: true, Upper: n(7.5)}, 6.5, 0, 0, kept},
		{Increment{By: n(10), Float: true, Upper: n(7.5), Saturate: true, Expiry: "PX", At: 9_000_000}, 7.5, 1, kept, 9_000},
	}
}

// Increx makes calls of INCREX with each option on a new key, and expects the value, what was added, and
// how many seconds the key then lives.
func Increx(call func(Increment) (value, added float64, err error), ttl func() (int64, error)) error {
	for i, c := range increments(time.Now()) {
		value, added, err := call(c.Increment)
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		left, err := ttl()
		if err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if value != c.value || added != c.added || left <= c.over || left > c.mostLeft {
			return fmt.Errorf("call %d: %v, %v added, for %d s; want %v, %v, %d to %d s", i, value, added, left, c.value, c.added, c.over, c.mostLeft)
		}
	}
	return nil
}
