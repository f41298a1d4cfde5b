// Package replicas is the seam between replication and those who ask about it: a server's state, and what a
// leader's commands do for replicas. Its types are values, safe for concurrent reading.
package replicas

import "time"

// Role is a server's part in replication.
type Role uint8

// Roles:
const (
	Leader Role = iota
	Replica
)

// String returns "leader" or "replica".
func (r Role) String() string { return [...]string{"leader", "replica"}[r] }

// Link is the state of a replica's link to its leader, named as in ROLE.
type Link uint8

// States of a link:
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

// Kinds of keeping:
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
	LinkDownSinceNs int64 // 0 while it is connected
	LastIONs        int64 // when something was last received; 0 for never
	LagNs           int64 // time since the replica was known to have everything; math.MaxInt64 for never
	SyncBytes       int64 // received of a full sync under way
	LatestNs        int64 // latest time of the leader's clock
	LinkError       error // why the link is down; nil for none

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
	HandoverTimeouts uint64 // likewise, whose leader was silent, and are as a crash
	HandoverFailures uint64 // likewise, after which the leader goes on leading
	RefusedWithout   uint64 // times that changes began to be refused for lack of good replicas
}
