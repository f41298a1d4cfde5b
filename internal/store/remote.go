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
	// OneStep returns a Failure for keys that cannot be changed in one step, such as CROSSSLOT. It does not
	// wait.
	OneStep(keys []Key) error
	// Begin reads keys and returns a transaction on these states, like a released one: Commit detects changes
	// by others. The error is a Failure: OneStep's, or one that is ErrTooLarge, too, for keys with too many
	// bytes, or any other.
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
	// NowNs returns the time at which it decides, by the caller's clock: Begin's, or its last conflict's.
	NowNs() int64
	// Commit publishes all writes at once and ends the transaction. It returns false, with no effect, if a
	// key has changed since it was read: then the transaction has begun anew, on the present states. An error
	// ends it, too: it is a Failure, whose line tells whether anything may have happened.
	Commit(ctx context.Context) (done bool, err error)
}

// Failure is an error of a remote store or its machines: one line with an error code, sent to clients as it
// is: STOREDOWN if the machines did not answer, CROSSSLOT, or the machines' own.
type Failure struct{ Line string }

func (f Failure) Error() string { return f.Line }

// Abilities are what not every store can do. Users ask for one, and not for the kind of store.
type Abilities struct {
	// AtOnce reports whether transactions and single steps wait for no other machine, so that event loops may
	// make them, and keys can be held meanwhile. Elsewhere a transaction is repeated until nobody else has
	// changed its keys.
	AtOnce bool
	// Texts reports whether there are values of Redis beside limiters.
	Texts bool
	// Databases reports whether there are several.
	Databases bool
}

func AbilitiesOf(s Store) Abilities {
	if r, ok := s.(Remote); ok {
		return r.Abilities()
	}
	return Abilities{AtOnce: true, Texts: true, Databases: true}
}

// Fallback decides requests that a Remote's machines do not.
type Fallback uint8

const (
	// FallbackError answers with an error.
	FallbackError Fallback = iota
	// FallbackAllow answers like an empty limiter.
	FallbackAllow
	// FallbackDeny answers limited.
	FallbackDeny
	// FallbackLocal decides in a local store by a share of the limits.
	FallbackLocal
	Fallbacks
)

// String returns the name that FallbackOf reads.
func (f Fallback) String() string { return [...]string{"error", "allow", "deny", "local"}[f] }

func FallbackOf(name string) (f Fallback, ok bool) {
	for f := range Fallbacks {
		if f.String() == name {
			return f, true
		}
	}
	return 0, false
}

type Health struct {
	Store  string // URL without a password
	Policy Fallback

	Asked   bool  // a server has answered, or failed to, since the start
	Masters int   // number of deciding servers; 0 if unknown
	Up      int   // number of answering masters
	Fault   error // of a failing server; nil if all answer
	SinceNs int64 // Unix time of the last change between none and some answering
	Keys    int   // at the last look, foreign ones included

	Stats RemoteStats
}

// Away reports whether no server answers.
func (h *Health) Away() bool { return h.Asked && h.Up == 0 }

// RemoteStats are counters since a Remote's opening, and gauges.
type RemoteStats struct {
	Requests    uint64 // received
	Asked       uint64 // of these, sent to a server
	Joined      uint64 // of these, beyond the first of each script
	Scripts     uint64 // sent
	Pipelines   uint64
	Prefiltered uint64 // denied by a recently read TAT
	Late        uint64 // answers after the policy's decision

	Resent map[Reason]uint64    // scripts sent again, by reason
	Failed map[Reason]uint64    // requests left to the policy or failed, by reason
	Policy map[Fallback]Decided // requests decided by the policy

	Waiting      int // unanswered requests
	WaitingBytes int // of their names
	Servers      []ServerStats
}

// ByPolicy returns the number of requests decided by the policy.
func (st *RemoteStats) ByPolicy() (n uint64) {
	for _, decided := range st.Policy {
		n += decided.Total()
	}
	return n
}

// Reason is the cause of a server's failure, as a metric's label.
type Reason string

// Decided counts requests by the policy's answer.
type Decided struct{ Allowed, Limited, Failed uint64 }

func (d Decided) Total() uint64 { return d.Allowed + d.Limited + d.Failed }

// ServerStats describes a Remote's server and the requests to it.
type ServerStats struct {
	Addr        string
	Queued      int   // keys with requests that wait for a pipeline
	InFlight    int   // pipelines
	RoundTripNs int64 // moving average for a pipeline

	Circuit    string            // circuit breaker: closed, half-open or open
	Error      string            // last one counted against the server; empty while it answers
	Loaded     uint64            // scripts unknown to the server
	Redirected uint64            // calls to another server
	Failed     map[Reason]uint64 // calls, counting each try
	Conns      int               // open connections
}
