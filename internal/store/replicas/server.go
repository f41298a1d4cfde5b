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
	ErrHandingOver   = errors.New("another planned change is under way")
	ErrReplicaGone   = errors.New("the replica is gone; this server goes on leading")
	ErrHandedLate    = errors.New("the replica did not take everything in time; it takes over, as after a crash")
)

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
	// Lead makes the server a leader. One that follows a leader which is there first has it hand over, for a
	// second at most.
	Lead()
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
	// HandOver makes the replica at an address the leader. done is called once, from any goroutine, when it
	// may lead, with an error if it does not have everything.
	HandOver(to Address, done func(err error))
	// Detach ends the service of a client whose connection has ended.
	Detach(client int64)
}
