package replicas

import (
	"errors"
	"fmt"
	"time"
)

// Client is the connection of a replica.
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
