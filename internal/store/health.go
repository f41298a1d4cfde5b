package store

// Fallback is how requests are decided that the machines of a Remote do not decide.
type Fallback uint8

// The fallbacks:
const (
	// FallbackError answers them with an error.
	FallbackError Fallback = iota
	// FallbackAllow allows what an empty limiter would.
	FallbackAllow
	// FallbackDeny limits them.
	FallbackDeny
	// FallbackLocal has a store of this process decide by a share of their limits.
	FallbackLocal
	Fallbacks
)

// String returns the fallback's name, as FallbackOf reads it.
func (f Fallback) String() string { return [...]string{"error", "allow", "deny", "local"}[f] }

// FallbackOf returns the fallback of a name.
func FallbackOf(name string) (f Fallback, ok bool) {
	for f := range Fallbacks {
		if f.String() == name {
			return f, true
		}
	}
	return 0, false
}

// Health is how a Remote is.
type Health struct {
	Store  string // its URL, without a password
	Policy Fallback

	Asked   bool  // whether its servers have answered, or failed to, since the start
	Masters int   // servers that decide, 0 where not even that is known
	Up      int   // of these, that answer
	Fault   error // why one of them does not; nil if all do
	SinceNs int64 // Unix time since which some of them answer, or none does
	Keys    int   // that they had when they were last asked, those of others included

	Stats RemoteStats
}

// Away reports whether no server has answered.
func (h *Health) Away() bool { return h.Asked && h.Up == 0 }

// RemoteStats is what a Remote has counted since it was opened, and what waits.
type RemoteStats struct {
	Requests    uint64 // that came
	Asked       uint64 // of these, that were sent to a server
	Joined      uint64 // of these, beyond the first of each script
	Scripts     uint64 // that were sent
	Pipelines   uint64
	Prefiltered uint64 // requests that were denied by a TAT which was read lately
	Leased      uint64 // requests that were allowed from units taken ahead
	Late        uint64 // answers to requests that the policy had decided

	Resent map[Reason]uint64    // scripts, by why they had not been executed
	Failed map[Reason]uint64    // requests that were left to the policy, or failed
	Policy map[Fallback]Decided // requests that it has decided

	Waiting      int // requests that are not answered
	WaitingBytes int // of their names
	Servers      []ServerStats
	Lease        LeaseStats
}

// ByPolicy returns how many requests the policy has decided.
func (st *RemoteStats) ByPolicy() (n uint64) {
	for _, decided := range st.Policy {
		n += decided.Total()
	}
	return n
}

// Reason is why a server has not done what was asked, as the label of a metric.
type Reason string

// Decided is requests by what the policy has answered.
type Decided struct{ Allowed, Limited, Failed uint64 }

// Total is all of them.
func (d Decided) Total() uint64 { return d.Allowed + d.Limited + d.Failed }

// ServerStats is what is known of a server of a Remote, and of the requests to it.
type ServerStats struct {
	Addr        string
	Queued      int   // keys whose requests wait for a pipeline
	InFlight    int   // pipelines
	RoundTripNs int64 // of a pipeline, on a moving average

	Circuit    string            // of its circuit breaker: closed, half-open or open
	Error      string            // the last one that counted against it; empty while it answers
	Loaded     uint64            // scripts, as the server did not know them
	Redirected uint64            // calls that it has sent to another server
	Failed     map[Reason]uint64 // calls; each try counts
	Conns      int               // connections that are open
}

// LeaseStats is what has become of units that were taken ahead, and what is there.
type LeaseStats struct {
	Keys int   // that have leases
	Open int64 // units that can be used

	Asked    uint64
	Granted  uint64
	Used     uint64
	Lost     uint64 // their slots began, or were in doubt, before they were used
	Returned uint64 // their time was over; whether they could be given back is not known here
}
