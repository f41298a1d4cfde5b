package reply

import "cellserver/internal/resp"

// Errors about holds:
const (
	ErrHoldTaken Error = "ERR the id is another hold's, of other arguments; give another ID, or none"
	ErrOverdue   Error = "ERR the id is a hold's whose time is over; commit it, or give another ID"
	ErrPairs     Error = "ERR the pairs are not those that the hold was made for; give all of them, and no others"
)

// TooManyHolds refuses one more hold on a full key.
func TooManyHolds(key []byte) error {
	return Error("TOOMANYHOLDS the key '" + resp.PrintableN(key, maxNameBytes) + "' has as many open holds as it may; commit some, or spread them over several keys")
}

// ExactWindowHolds refuses a hold by a limit that has no DEBIT.
func ExactWindowHolds(name string) error {
	return Error("ERR the limit '" + name + "' has an exact sliding window for this key, which can hold nothing; use approximate_window")
}
