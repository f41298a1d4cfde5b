// Package store is the seam between deciding and keeping: the required and the optional capabilities of a
// store of limiter states. Stores, Walkers and Transactors are safe for concurrent use; their transactions
// and watches belong to one goroutine at a time.
//
// Every call takes the time, in Unix nanoseconds, which never goes back. A key is absent from its expiry on.
package store

import (
	"context"
	"errors"
	"math"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

var (
	// ErrFull is the Err of a request for a new key beyond the store's bound. Nothing has changed.
	ErrFull = errors.New("store: no room for another key")
	// ErrFrozen is the Err of a request for a change while changes are refused. Nothing has changed.
	ErrFrozen = errors.New("store: nothing can be changed now")
	// ErrTooLarge is the Err of a request in a transaction with too many bytes of payloads. Nothing has
	// changed.
	ErrTooLarge = errors.New("store: a transaction has no room for more payloads")
)

// Key names a state within one of up to 65,536 databases.
type Key struct {
	DB   uint16
	Name []byte
}

// Request is a call of a limiter and its answer: Result, or Err if the store failed or the key is of another
// kind. With AtMost the answer's Quantity is that for which it was decided, see limiter.Rule.Units.
type Request struct {
	Key      Key
	Rule     limiter.Rule
	Quantity int64
	Result   funnel.Result
	Err      error
}

type Entry struct {
	Kind      limiter.Kind
	ExpiresNs int64
}

// Keys are the operations on keys, single steps on a store, or parts of a transaction.
type Keys interface {
	// Throttle decides the requests of a batch in order, at one time, and sets each Result and Err. It
	// returns nil when done. Otherwise it has copied the batch's names, which are parts of a connection's
	// buffer, and the Pending answers later. Transactions answer at once.
	Throttle(nowNs int64, batch []Request) Pending
	// Apply applies a step to a key's state and leaves the answers in it. On an error, ErrFull, ErrFrozen,
	// ErrTooLarge or the step's own, nothing has changed.
	Apply(nowNs int64, key Key, step Step) error
	// Entry returns a key's Entry, and false if it is absent.
	Entry(nowNs int64, key Key) (e Entry, ok bool, err error)
	// State returns a key's state, with a payload owned by the caller, and false if it is absent.
	State(nowNs int64, key Key) (s limiter.State, ok bool, err error)
	// Delete removes keys in one step and returns the number of live ones, without duplicates.
	Delete(nowNs int64, keys []Key) (deleted int, err error)
}

// Store keeps the states of keys. It may also be a Walker, a Watcher or a Transactor; commands that need a
// missing capability are refused.
type Store interface {
	Keys
	UpdateStats(st *Stats)
}

// Pending is a batch with answers to come.
type Pending interface {
	// Notify calls wake once, from any goroutine, when the answers are there, at once if they are already.
	Notify(wake func())
	// Answers returns the answered requests in order, and false before.
	Answers() (answered []Request, ok bool)
	// Cancel ends the interest in the answers. The requests may still take effect.
	Cancel()
}

// Walker is a store, or a transaction on all keys, that can enumerate its keys.
type Walker interface {
	// MemoryUsage returns a key's cost in bytes, and false if it is absent.
	MemoryUsage(nowNs int64, key Key) (bytes int, ok bool)
	// Count adds the numbers of live keys by database to counts and ignores databases beyond. It ends early,
	// incomplete, with ctx.
	Count(ctx context.Context, nowNs int64, counts []KeyCount)
	// Scan visits about count live keys of a database and returns the next cursor. A walk from cursor 0 until
	// 0 is returned visits every key that lives throughout. visit must not keep the name, and may use the
	// store.
	Scan(nowNs int64, db uint16, cursor uint64, count int, visit func(key Key, e Entry)) (next uint64)
	// Flush removes a database's keys, or some of them if ctx ends first.
	Flush(ctx context.Context, db uint16)
	// FlushAll removes all keys in one step.
	FlushAll()
	UpdateStats(st *Stats)
}

type KeyCount struct {
	Keys     int
	Expiring int // keys with an expiry
}

// Policy decides about a new key without space.
type Policy uint8

const (
	// VolatileTTL evicts expired keys, then the soonest expiring near the new one, which forgives least.
	VolatileTTL Policy = iota
	// NoEviction refuses it by ErrFull. Existing keys are unaffected.
	NoEviction
)

// String returns Redis's name of the policy.
func (p Policy) String() string { return [...]string{"volatile-ttl", "noeviction"}[p] }

// Maximum is a server's memory limit. The zero Maximum limits nothing.
type Maximum struct {
	Bytes       int64
	Policy      Policy
	ScriptBytes int64 // of Bytes, for compiled and cached scripts
}

type Bounded interface {
	// SetMaxBytes bounds Stats.Bytes; 0 is no bound. With VolatileTTL, a larger store shrinks in the
	// background.
	SetMaxBytes(maxBytes int64, policy Policy)
	// SetMaxValueBytes bounds Stats.Values.Bytes by the same policy. Values that never expire are not
	// evicted: where nothing else is left, new ones are refused.
	SetMaxValueBytes(maxBytes int64)
}

// Change is a key's new state. If it has expired by the time, the key was removed.
type Change struct {
	Key     Key
	State   limiter.State
	Flushed bool   // all keys were removed; Key is unset
	Spent   *Spent // what was spent so far under a limit on a day; all else is unset
}

// Spender is a store that knows what was spent by limit and day.
type Spender interface {
	// Spent returns the units of a limit by day, or of all limits if it is empty.
	Spent(limit string) Spends
	// SpendBy sets how limits and days are told, before anything is spent.
	SpendBy(at func(limit []byte, atNs int64) (at SpentAt, defined bool))
}

// Never is the time from which changes are refused where they are not.
const Never = math.MaxInt64

// Round visits all changes since they were last visited; see Tracker.Changes.
func Round(t Tracker, nowNs int64, visit func(c Change)) (complete bool) {
	complete = true
	for cursor, begun := 0, false; cursor != 0 || !begun; begun = true {
		var all bool
		cursor, all = t.Changes(nowNs, cursor, visit)
		complete = complete && all
	}
	return complete
}

// Tracker is a store that reports changes.
type Tracker interface {
	// Track starts recording changes. hurry is called, from any goroutine and under locks, when many removals
	// require a call of Changes soon; it must not wait.
	Track(hurry func())
	// Changes visits some of the changes since they were last visited, in an order in which they can be
	// replayed. A round begins at cursor 0 and ends when 0 is returned. It has all changes before its
	// beginning, no key that a transaction moves is missing in it under both names, and what a transaction
	// does by joined steps is in it for all keys or for none. visit must not keep name and payload. Keys that
	// have expired as reported, and evicted ones, are not reported again.
	// complete is false if too many removals were not recorded. Calls must not overlap.
	Changes(nowNs int64, cursor int, visit func(c Change)) (next int, complete bool)
	// States visits all live keys until ctx ends. A concurrent change may be visited before, after, or twice;
	// replaying Changes from then on is exact. between, unless nil, is called where everything read so far
	// has been visited; it may wait.
	States(ctx context.Context, nowNs int64, visit func(c Change), between func())
	// Restore replays changes of the keys in one of parts parts of the store. All changes must be given to
	// every part, in order.
	Restore(nowNs int64, part, parts int, changes []Change)
	// Freeze refuses requests for changes from a time on by an error, which wraps ErrFrozen; Never permits
	// them.
	Freeze(fromNs int64, err error)
}

// Watcher is a store that notices changes of keys.
type Watcher interface {
	// Watch begins to watch keys. It does not keep their names.
	Watch(nowNs int64, keys []Key) Watch
}

// Watch notices writes, creations, deletions and flushes of its keys by anybody, even if undone, and the
// expiry of keys that were live at its start. It must be closed.
type Watch interface {
	// Add watches more keys; those already watched stay unchanged.
	Add(nowNs int64, keys []Key)
	// Dirty reports whether a key has changed or expired. A transaction that depends on it calls it within
	// the transaction, at its time. After a concurrent Close its result is meaningless.
	Dirty(nowNs int64) bool
	// Close ends the watch, repeatedly if need be. The caller must have no transaction under way.
	Close()
}

// Transactor is a store that executes several calls as one step.
type Transactor interface {
	// Begin returns a transaction that has read the keys and keeps others from them. Names must stay
	// unchanged until its end.
	Begin(nowNs int64, keys []Key) Transaction
	// BeginAll excludes all others from the store and returns a transaction on all keys.
	BeginAll(nowNs int64) Exclusive
}

// Restorer is a transaction's ability to restore keys.
type Restorer interface {
	// Save returns an undo to the present states. It is called at most once, and not after an earlier Save's,
	// as parts of a part may be undone.
	Save() (undo func())
}

// Transaction is several calls as one step at the time of its beginning, whatever time they are given. Keys
// other than Begin's panic. Commit or Rollback ends it. Rollback must be the last call and the only one of
// its kind, also after Commit, where it drops nothing. Until the end its goroutine must use the store through
// it only, unless Released.
type Transaction interface {
	Keys
	Restorer
	// Release admits others to the keys, for long transactions; Commit then detects their changes.
	Release()
	// Commit publishes all writes at once and ends the transaction. It returns false, with no effect, if a
	// released transaction with writes finds a changed key.
	Commit() bool
	// Rollback drops all writes and ends the transaction.
	Rollback()
}

// Exclusive is sole access to a store until End, at the time of its beginning, whatever time its methods are
// given. Writes are immediate and final. Its goroutine must use the store through it only.
type Exclusive interface {
	Keys
	Restorer
	Walker
	// End admits others again. Further calls do nothing.
	End()
}

// CountedUnits returns the counted units of a request: none if negative, at most 2^32 against overflow of
// sums.
func CountedUnits(quantity int64) uint64 { return uint64(min(max(quantity, 0), 1<<32)) }

// Stats are a store's counters since its start, and its size.
type Stats struct {
	Keys      int // entries, including expired ones not yet swept
	Slots     int // used and free
	Bytes     int // of the limiters' tables, long keys and directories
	NameBytes int // upper bound for the entries' names
	Allowed   uint64
	Limited   uint64
	Requested uint64 // units, by CountedUnits
	Granted   uint64 // units
	DebitsCut uint64 // debits cut off, as a TAT is at most 2^62 ns ahead
	Expired   uint64 // entries removed by the sweep
	Swept     uint64 // segments swept
	MaxBytes  int    // see Bounded; 0 for none
	Evicted   uint64 // live limiters
	Refused   uint64 // requests of limiters failed by ErrFull
	Values    ValueStats

	Outcomes [limiter.Kinds]Outcomes // by kind; Allowed and Limited are their sums

	Holds map[string]HoldStats // by limit; see HoldCounts
}

// ValueStats are the part of a store with values.
type ValueStats struct {
	Keys     int // of Stats.Keys
	Endless  int // of these, those that never expire
	Bytes    int // beside Stats.Bytes
	MaxBytes int
	Evicted  uint64
	Refused  uint64
}

// Outcomes counts decided requests by kind: Reserving for reservations, Funnel for all other requests on
// funnels.
type Outcomes struct {
	Allowed, Limited uint64
}

var ErrSaving = errors.New("store: a snapshot is being written already")

// NoSync leaves syncing to the operating system.
const NoSync time.Duration = -1

// Durability is the state of a store's persistence. Times are Unix nanoseconds of the server's clock, 0 for
// never.
type Durability struct {
	Interval time.Duration // between syncs; 0 syncs before each reply, or NoSync

	Loading       bool // clients must wait for the loading
	LoadBeganNs   int64
	LoadTookNs    int64
	LoadBytes     int64 // of the files to load
	LoadedBytes   int64
	LoadedKeys    int64 // live ones after loading
	ClockOffsetNs int64 // the server's clock minus the system's, which went back during the downtime

	Saving         bool // a snapshot is under way
	SaveBeganNs    int64
	LastSaveNs     int64 // completion of the last snapshot
	LastSaveTookNs int64 // -1 before the first
	LastSaveErr    error // of the last attempt, or nil
	Saves          uint64

	// Fault is the cause of the disk's lag, until a new generation of files is complete; or nil.
	Fault        error
	FaultSinceNs int64
	Faults       uint64 // since the start

	SyncedNs       int64 // time up to which changes are on disk, or with NoSync handed to the system
	Syncs          uint64
	LastSyncTookNs int64
	WrittenBytes   uint64 // to logs and snapshots since the start
	Records        uint64 // to logs since the start
	SinceSave      uint64 // records since the last snapshot began
	Generation     uint64 // number of the newest log that the manifest names; 0 for none
	Sequence       uint64 // of that log's next frame
	Renewing       bool   // states were replaced, and no manifest names a snapshot of them yet
	SnapshotBytes  int64  // of the snapshot to load at a start; 0 for none
	LogBytes       int64  // of the logs to load at a start
	WaitingReplies int64  // that wait for a sync
}
