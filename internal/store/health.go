package store

// Fallback decides requests that a Remote's machines do not.
type Fallback uint8

// Fallbacks:
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

// Health is a Remote's condition.
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
