// Package store is the seam between deciding and keeping: what a store of limiter states takes and answers, and what
// it may be able to do beyond that. A Store, a Walker and a Transactor are safe for concurrent use; what they hand
// out belongs to one goroutine at a time.
//
// Time is an argument of every call, in Unix nanoseconds, and never goes back from one call to the next. A key that expires
// not after that time is absent for every caller.
package store

import (
	"context"
	"errors"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

var (
	// ErrFull is the Err of a request that would have made a key beyond the store's bound. Nothing has changed.
	ErrFull = errors.New("store: no room for another key")
	// ErrFrozen is the Err of a request that would have changed a key while that is refused. Nothing has changed.
	ErrFrozen = errors.New("store: nothing can be changed now")
	// ErrTooLarge is the Err of a request in a transaction that holds as many bytes of payloads as it may. Nothing has changed.
	ErrTooLarge = errors.New("store: a transaction has no room for more payloads")
)

// Key names a state: bytes within one of up to 65,536 databases.
type Key struct {
	DB   uint16
	Name []byte
}

// Request is one call of a limiter, and then its answer: Result, or Err if the store could not decide, or the key is of
// another kind.
type Request struct {
	Key      Key
	Rule     limiter.Rule
	Quantity int64
	Result   funnel.Result
	Err      error
}

// Entry is what is known of a key at a glance.
type Entry struct {
	Kind      limiter.Kind
	ExpiresNs int64
}

// Keys is what can be done with keys: on a store, where each call is a step of its own, or within a transaction.
type Keys interface {
	// Throttle decides the requests of a batch in order, all of them at one time, and sets Result and Err of each,
	// whatever they were. It returns nil if that is done. Otherwise it has copied what it needs of the batch, for the
	// names are slices of a connection's buffer, and the Pending answers later. Transactions answer at once.
	Throttle(nowNs int64, batch []Request) Pending
	// Apply does a step to a key's state, which has its answers then. The error is ErrFull, ErrFrozen,
	// ErrTooLarge, or the step's own; then nothing has changed.
	Apply(nowNs int64, key Key, step Step) error
	// Entry returns of what kind a key is and when it expires, and false if the key is absent.
	Entry(nowNs int64, key Key) (e Entry, ok bool, err error)
	// State returns a key's state, of which the payload is the caller's, and false if the key is absent.
	State(nowNs int64, key Key) (s limiter.State, ok bool, err error)
	// Delete removes keys as one step and returns how many were live; a key that is named twice counts once.
	Delete(nowNs int64, keys []Key) (deleted int, err error)
}

// Store keeps the states of keys. What it can do beyond Keys it says by being a Walker, a Watcher or a Transactor,
// too; a command that needs what the store lacks is refused.
type Store interface {
	Keys
	// UpdateStats adds the store's figures to st.
	UpdateStats(st *Stats)
}

// Pending is a batch that will be answered later.
type Pending interface {
	// Notify has wake called once, from any goroutine, as soon as the answers are there; at once if they are.
	Notify(wake func())
	// Answers returns the requests of the batch in their order, answered, and false while they are not.
	Answers() (answered []Request, ok bool)
	// Cancel says that nobody waits for the answers any more. What was requested may still happen.
	Cancel()
}

// Walker is a store that can go through all of its keys. So is a transaction over all keys.
type Walker interface {
	// MemoryUsage returns how many bytes a key costs, and false if the key is absent.
	MemoryUsage(nowNs int64, key Key) (bytes int, ok bool)
	// Count adds each database's live keys to its place in counts; databases beyond that are passed over. It ends early
	// when ctx does, with some of the keys.
	Count(ctx context.Context, nowNs int64, counts []KeyCount)
	// Scan visits about count of a database's live keys and returns the cursor to continue with. A walk begins with
	// cursor 0, and has ended when 0 is returned. It visits every key that lives throughout. visit must not keep the
	// name, and may use the store.
	Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(key Key, e Entry)) (next uint64)
	// Flush removes all keys of a database, or some of them if ctx ends first.
	Flush(ctx context.Context, db uint16)
	// FlushAll removes all keys as one step.
	FlushAll()
	// UpdateStats is Store.UpdateStats.
	UpdateStats(st *Stats)
}

// KeyCount is how many keys there are.
type KeyCount struct {
	Keys     int
	Expiring int // of these, those that have a time at which they expire
}

// Policy is what becomes of a new key that has no room.
type Policy uint8

const (
	// VolatileTTL evicts others for it: those that have expired, and then, near the key's place, the one that would
	// expire soonest, so that the least is forgiven.
	VolatileTTL Policy = iota
	// NoEviction refuses it by ErrFull. Keys that are there answer as before.
	NoEviction
)

// String returns the policy's name, as Redis has it.
func (p Policy) String() string { return [...]string{"volatile-ttl", "noeviction"}[p] }

// Maximum is the largest memory that a server may have. The zero Maximum is none.
type Maximum struct {
	Bytes       int64
	Policy      Policy
	ScriptBytes int64 // of Bytes, for scripts that are compiled and cached
}

// Bounded is a store whose memory can be bounded.
type Bounded interface {
	// SetMaxBytes bounds Stats.Bytes; 0 is no bound. By VolatileTTL a larger store shrinks in the background.
	SetMaxBytes(maxBytes int64, policy Policy)
}

// Change is what has become of a key: the state that it has now. If it expires not after the time, it is gone.
type Change struct {
	Key     Key
	State   limiter.State
	Flushed bool // all keys of all databases are gone; there is no Key
}

// Tracker is a store that can tell what has changed in it.
type Tracker interface {
	// Track has changes noted from now on. hurry is called, from any goroutine and under locks, when so many keys are gone that
	// Changes should be called soon; it must not wait.
	Track(hurry func())
	// Changes calls visit with what has changed since it was last called, in an order in which it can be done elsewhere to
	// have the same. visit must not keep the name and the payload. Keys that were evicted, or expired as they were told of, are not told of
	// again. complete is false if so many keys are gone that some of them were not told of. One call must end before another
	// begins.
	Changes(nowNs int64, visit func(c Change)) (complete bool)
	// States calls visit with all live keys, unless ctx ends first. What changes meanwhile may be told of as it was or as it
	// is, or twice; who does what Changes tells from then on has all as it is.
	States(ctx context.Context, nowNs int64, visit func(c Change))
	// Restore does what was told of those keys that are in one of so many parts of the store: what was told is done when it
	// was given to all of them, to each in the order in which it was told.
	Restore(nowNs int64, part, parts int, changes []Change)
	// Freeze has requests refused by ErrFrozen that would change a key, or has them executed again.
	Freeze(frozen bool)
}

// Watcher is a store that notices changes of keys.
type Watcher interface {
	// Watch begins to watch keys. It does not keep their names.
	Watch(nowNs int64, keys []Key) Watch
}

// Watch notices whether any of its keys changes: is written, created, deleted or flushed, by whomever, even if it
// changes back, or expires though it was live when its watch began. It must be closed.
type Watch interface {
	// Add watches more keys. One that is watched already stays as it is.
	Add(nowNs int64, keys []Key)
	// Dirty reports whether a key has changed or expired. For a transaction that must happen only if none has, call
	// it within the transaction, at its time. It may be called while another goroutine calls Close, after which its
	// answer means nothing.
	Dirty(nowNs int64) bool
	// Close forgets the keys. The caller must have no transaction under way; a closed Watch may be closed again.
	Close()
}

// Transactor is a store that executes several calls as one step.
type Transactor interface {
	// Begin returns a transaction over the keys, which it has read and keeps from others. The names must stay as they
	// are until its end.
	Begin(nowNs int64, keys []Key) Transaction
	// BeginAll waits for everybody else and keeps them out of the store. All keys are the transaction's.
	BeginAll(nowNs int64) Exclusive
}

// Restorer is a part of a transaction: it puts keys back into an earlier state.
type Restorer interface {
	// Save returns what puts all keys back into the states that they have now. It is called at most once, and not behind that
	// of a Save before: what is to be undone may have parts that are.
	Save() (undo func())
}

// Transaction is several calls as one step, at the time at which it began, whatever time they are given. It may name
// only keys that Begin was given; another one panics. It ends with Commit or Rollback, best with a deferred Rollback,
// which does nothing after Commit; until then its goroutine must not use the store but through it, unless it has called
// Release.
type Transaction interface {
	Keys
	Restorer
	// Release lets others at the keys and keeps the states that were read. Others may then change the keys, and
	// Commit finds out whether they did: for a transaction that takes longer than others should wait.
	Release()
	// Commit makes all that was written visible at once, ends the transaction, and reports whether it did. It does
	// not, and then nothing has happened, if the transaction was released, has written, and finds a key in another
	// state than it read.
	Commit() bool
	// Rollback forgets all that was written and ends the transaction.
	Rollback()
}

// Exclusive is a store that nobody else can use until End, at the time at which it began, whatever time its methods are
// given. What it writes is written at once; there is no way back. It belongs to one goroutine, which must not use the
// store but through it.
type Exclusive interface {
	Keys
	Restorer
	Walker
	// End lets the others in again. What has ended may be ended again.
	End()
}

// CountedUnits returns how many units a request for so many counts for: none if it gives some back, and at most 2^32, so that no
// client can bring the sums around to 0.
func CountedUnits(quantity int64) uint64 { return uint64(min(max(quantity, 0), 1<<32)) }

// Stats is what a store has counted since it was made, and what it holds.
type Stats struct {
	Keys      int // entries, those included that expired since the sweep was last there
	Slots     int // room for entries, those in use included
	Bytes     int // of the tables, with long keys and directories
	NameBytes int // of the entries' names, at most
	Allowed   uint64
	Limited   uint64
	Requested uint64 // units, as CountedUnits counts them
	Granted   uint64 // units
	Expired   uint64 // entries that the sweep removed
	Swept     uint64 // segments that it looked at
	MaxBytes  int    // see Bounded; 0 for no bound
	Evicted   uint64 // live keys
	Refused   uint64 // requests that failed with ErrFull

	Outcomes [limiter.Kinds]Outcomes // what Allowed and Limited are the sums of
}

// Outcomes is what requests that were decided as a kind of limiter came to: a reservation is one of Reserving, any other request
// on a funnel, whether that has reservations or not, one of Funnel.
type Outcomes struct {
	Allowed, Limited uint64
}
