package store

import "context"

// Remote is a store on other machines, whose clocks decide. Throttle never waits for them. Other methods wait
// up to the time of a decision, so they must not be called on an event loop.
//
// Times of keys, in an Entry or a State, are converted to the caller's clock by nowNs.
type Remote interface {
	Store
	// Abilities returns what it can do in spite of that.
	Abilities() Abilities
	// Begin reads keys and returns a transaction on these states, like a released one: Commit detects changes
	// by others. The error is a Failure, such as CROSSSLOT for keys that cannot be changed in one step.
	Begin(ctx context.Context, nowNs int64, keys []Key) (RemoteTransaction, error)
	// Size returns the number of keys on the machines.
	Size(ctx context.Context) (keys int, err error)
	// Scan is Walker.Scan for a store of one machine; otherwise it returns an error.
	Scan(ctx context.Context, nowNs int64, cursor uint64, count int, visit func(key Key, e Entry)) (next uint64, err error)
}

// RemoteTransaction is a Transaction whose Commit may wait.
type RemoteTransaction interface {
	Keys
	Restorer
	// Commit publishes all writes at once and ends the transaction. It returns false, with no effect, if a
	// key has changed since it was read. An error is a Failure, whose line tells whether anything may have
	// happened.
	Commit(ctx context.Context) (done bool, err error)
}

// Failure is an error of a remote store or its machines: one line with an error code, sent to clients as it
// is: STOREDOWN if the machines did not answer, CROSSSLOT, or the machines' own.
type Failure struct{ Line string }

func (f Failure) Error() string { return f.Line }
