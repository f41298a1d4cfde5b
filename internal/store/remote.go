package store

import "context"

// Remote is a store on other machines, whose clocks decide. Throttle never waits for them. All other methods do, though no
// longer than the store lets a decision take, so nobody may call them where others wait, as on an event loop.
//
// What is told of a key is shifted to the caller's clock, as if that and the machines' had shown the same time: the times in an
// Entry and a State are by nowNs.
type Remote interface {
	Store
	// Begin reads keys and returns a transaction on the states that they had then, as one is that was released: others may
	// change the keys, and Commit finds out whether they did. The error is a Failure, as CROSSSLOT where the keys
	// cannot be changed in one step.
	Begin(ctx context.Context, nowNs int64, keys []Key) (RemoteTransaction, error)
	// Size returns how many keys the machines have.
	Size(ctx context.Context) (keys int, err error)
	// Scan is Walker.Scan for a store of one machine; else its error says so.
	Scan(ctx context.Context, nowNs int64, cursor uint64, count int, visit func(key Key, e Entry)) (next uint64, err error)
}

// RemoteTransaction is a Transaction on states that were read. Its Commit may have to wait.
type RemoteTransaction interface {
	Keys
	Restorer
	// Commit makes all that was written visible at once, and ends the transaction. It is false if somebody has changed a key
	// since it was read; then nothing has happened. An error is a Failure, whose line says
	// whether it may have.
	Commit(ctx context.Context) (done bool, err error)
}

// Failure is an error that a remote store, or its machines, have. Its text is one line that begins with an error code, for
// clients to be replied as it is: STOREDOWN where the machines could not answer, CROSSSLOT, or what the machines say.
type Failure struct{ Line string }

func (f Failure) Error() string { return f.Line }
