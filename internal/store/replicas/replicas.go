// Package replicas is the seam between replication and those who ask about it: a server's state, and what a
// leader's commands do for replicas. Its types are values, safe for concurrent reading.
package replicas

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

type Role uint8

const (
	Leader Role = iota
	Replica
)

func (r Role) String() string { return [...]string{"leader", "replica"}[r] }

// Link is the state of a replica's link to its leader, named as in ROLE.
type Link uint8

const (
	LinkConnect    Link = iota // not connected; tried again
	LinkConnecting             // waiting for the leader's answer
	LinkSync                   // taking all states
	LinkConnected              // following the changes
)

// String returns ROLE's word.
func (l Link) String() string { return [...]string{"connect", "connecting", "sync", "connected"}[l] }

// Kept is how a server's states are in its data directory.
type Kept uint8

const (
	NotKept    Kept = iota // there is no directory
	IsKept                 // a start would find them
	KeptLater              // they are another server's, and no manifest names a snapshot of them yet
	KeptFaulty             // the directory has a fault, and counts as none
	Missing                // the start has not found them
)

// String returns INFO's word.
func (k Kept) String() string { return [...]string{"no", "yes", "later", "fault", "missing"}[k] }

// Status is a server's state of replication. Times are of the server's clock in Unix nanoseconds.
type Status struct {
	Role         Role
	History      string // 40 hexadecimal digits
	Parent       string // the history that it branched from; "" for none
	BranchOffset int64  // the offset up to which both are the same
	Offset       int64  // bytes of the stream so far: gathered by a leader, applied by a replica
	Backlog      int64  // bytes of the stream that can be sent again
	MaxBacklog   int64
	Priority     int // for promotion, as Sentinel has it; 0 while the states are not complete, or a start would not find them
	Kept         Kept

	Replicas    []ReplicaStatus // of a leader, those connected, oldest first
	MinReplicas int             // to accept changes; 0 for no minimum
	MaxLagNs    int64           // of a replica that counts as good
	Good        int             // replicas

	// Of a replica:
	Leader          Address
	Link            Link
	LinkDownSinceNs int64    // 0 while it is connected
	LastIONs        int64    // when something was last received; 0 for never
	LagNs           int64    // time since the replica was known to have everything; math.MaxInt64 for never
	SyncBytes       int64    // received of a full sync under way
	LatestNs        int64    // latest time of the leader's clock
	LinkError       error    // why the link is down; nil for none
	Differing       []string // named limits and plans that are not as the leader's, by name

	HandingOver   bool          // a planned change of leader is under way
	HandoverError error         // why the last one to this server did not take place; nil for none
	RoundTrip     time.Duration // of the link, and of a leader's slowest replica; 0 before it is measured
	PeerLeads     bool          // the other server of the pair leads, too, with states of another origin
	Counts        Counts
}

// ReplicaStatus is a leader's view of a replica.
type ReplicaStatus struct {
	Address  Address
	State    string // wait_bgsave before the first state, send_bulk during a full sync, then online
	Offset   int64  // acknowledged
	LagBytes int64
	LagNs    int64 // since the last acknowledgement
	ClientID int64
}

// Counts are counted since the start.
type Counts struct {
	FullSyncs        uint64 // given to replicas
	PartialSyncs     uint64 // given: continued from the backlog
	Incomplete       uint64 // full syncs because more keys were gone than were noted
	Evicted          uint64 // replicas that were too slow
	FullSyncsTaken   uint64 // as a replica
	Promotions       uint64
	Demotions        uint64
	Handovers        uint64 // planned changes to this server that lost nothing
	HandoverTimeouts uint64 // planned changes whose leader was silent, as after a crash
	HandoverFailures uint64 // planned changes after which the leader goes on leading
	RefusedWithout   uint64 // times that changes began to be refused for lack of good replicas
}

type Client struct {
	ID      int64
	Address Address // of the replica, for clients
	Kill    func()
}

// Errors for replicas:
var (
	ErrNotLeader = errors.New("this server is not a leader")
	ErrNotGiven  = errors.New("a leader, or a replica without all states, gives none; follow the leader")
	ErrBeyond    = errors.New("the replica acknowledges more than it was sent")
	ErrNotSynced = errors.New("send CL.SYNC START first")
	ErrBehind    = errors.New("the replica is further behind than the backlog; it has to take all states again")
)

// FormatError reports a replica that reads older formats only.
type FormatError struct{ Format, Reads int }

func (e FormatError) Error() string {
	return fmt.Sprintf("the stream is of format %d, and the replica reads formats up to %d; upgrade the replica first", e.Format, e.Reads)
}

// Errors of a planned change:
var (
	ErrNoSuchReplica = errors.New("no replica with that address is in step")
	ErrHandingOver   = errors.New("a planned change of leader is under way; ask again")
	ErrReplicaGone   = errors.New("the replica has not taken over in time; this server goes on leading")
	ErrHandedLate    = errors.New("the replica did not take everything in time; it takes over, as after a crash")
	ErrNoHandover    = errors.New("the planned change has ended before; send CL.SYNC HANDOVER first")
)

// The bound of a planned change: LeastBound, or BoundTrips round trips if that is more.
const (
	LeastBound = time.Second
	BoundTrips = 10
	// MostRoundTrip is of a link over which a planned change is possible: clients are held meanwhile.
	MostRoundTrip = 1500 * time.Millisecond
)

// Bound returns how long a planned change may take over a link.
func Bound(roundTrip time.Duration) time.Duration {
	return max(LeastBound, BoundTrips*min(roundTrip, MostRoundTrip))
}

// SlowLinkError refuses a planned change over a link that is too slow.
type SlowLinkError struct{ RoundTrip time.Duration }

func (e SlowLinkError) Error() string {
	return fmt.Sprintf("the round trip to the leader is %d ms, and a planned change is possible up to %d ms; wait for a faster link, or stop the leader first",
		e.RoundTrip.Milliseconds(), MostRoundTrip.Milliseconds())
}

// Handover is what a replica that is to lead asks for.
type Handover struct {
	Client  int64   // the connection that asks
	To      Address // of the replica, for clients
	History string  // in which Offset is what the replica has
	Offset  int64
	Within  time.Duration // the bound; 0 for a replica of an older version, which takes over after a second in any case
}

// Start is the answer to a replica's first request.
type Start struct {
	Format  int
	Full    bool // all states follow
	HasHad  bool // the leader has, or ever had, a state, or was told to lead without
	History string
	Parent  string
	Branch  int64
	Offset  int64 // of the stream that follows
	ClockNs int64
}

// NextTime is how long a leader waits for something to send, and so between two acknowledgements.
const NextTime = 100 * time.Millisecond

// Server is a server that leads or follows. It is safe for concurrent use.
type Server interface {
	Status() Status
	// Starting is INFO's word for a server that has no role yet: no, without_states or with_states.
	Starting() string
	// Follow makes the server a replica. Changes are refused from now on.
	Follow(leader Address)
	// Lead makes the server a leader. One whose leader has answered within the bound has it hand over first,
	// and goes on following if that fails. It refuses a link that is too slow.
	Lead() error
	// Wait has a round begin at once, and calls done, once and from any goroutine, when enough replicas have
	// applied it. acknowledged ends the wait and returns their number.
	Wait(replicas int, done func()) (acknowledged func() int)

	// Attach begins to serve a replica that reads a format and has a history up to an offset. A server that
	// only takes states is served by a replica, too.
	Attach(c Client, reads int, history string, offset int64, takes bool) (Start, error)
	// Next notes that a replica has applied everything up to an offset, negative during a full sync, and
	// calls ready once, from any goroutine, when there is more for it; Take returns that.
	Next(client, applied int64, ready func()) error
	// Take returns the leader's time and what a replica has to apply next, perhaps nothing; the
	// frames are valid until the next call.
	Take(client int64) (clockNs int64, frames []byte, err error)
	// HandOver holds changes for a replica that is to lead, and calls done once, from any goroutine, with
	// what the replica does not have. Without a bound done is called when the replica may lead.
	HandOver(h Handover, done func(clockNs int64, frames []byte, err error))
	// TakeOver has the server follow the replica that has asked for it and has everything up to an offset, or
	// returns what it does not have.
	TakeOver(client, offset int64) (clockNs int64, frames []byte, err error)
	// Measured notes the round trip of a replica's link.
	Measured(to Address, roundTrip time.Duration)
	// Detach ends the service of a client whose connection has ended.
	Detach(client int64)
}

// Address is where a server answers clients.
type Address struct {
	Host string
	Port int
}

// String returns host:port, and "" for no address.
func (a Address) String() string {
	if a == (Address{}) {
		return ""
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// CheckHost refuses what is neither an IP address nor a name.
func CheckHost(host string) error {
	const most = 253
	known := func(c rune) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("-._:%", c)
	}
	if host == "" || len(host) > most || strings.ContainsFunc(host, func(c rune) bool { return !known(c) }) {
		return errors.New("the host must be an IP address or a name")
	}
	return nil
}

func ParseAddress(text string) (a Address, err error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return a, errors.New("must be host:port")
	}
	if err := CheckHost(host); err != nil {
		return a, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return a, errors.New("must be host:port, with a port between 1 and 65535")
	}
	return Address{host, int(n)}, nil
}
