package replication

import "cellserver/internal/store/replicas"

// state is what a server does in replication, and how far a change of that is.
type state uint8

// States; INFO calls the server a leader in the first six:
const (
	starting   state = iota // Begin has not decided yet
	leading                 //
	draining                // hands over: changes are held, and a round is to have the last ones
	answered                // hands over: the replica is sent everything, and takes over
	handedOver              // the replica has everything and leads; this server is about to follow it
	resigning               // is about to follow another server; replicas lack the last changes
	following               //
	requesting              // follows, and has the leader hand over
	promoted                // is about to lead; its role may not be on the disk
	states                  // how many there are
)

type event uint8

const (
	onFollow   event = iota // another server is to be followed
	onLead                  // this one is to lead at once
	onRequest               // this one is to lead once its leader has handed over
	onReady                 // Begin or Run lets it lead
	onHandOver              // a replica is to lead
	onAnswer                // the replica is sent what it lacks
	onTakeOver              // the replica has everything, and leads
	onLate                  // the replica leads with what it has
	onFail                  // the planned change has failed
	onResign                // Run has ended leading
	events                  // how many there are
)

type transition struct {
	from state
	on   event
	to   state
}

// transitions is the table. An event without a row is refused, and changes nothing.
func transitions() []transition {
	return []transition{
		{starting, onReady, leading},
		{starting, onFollow, following},

		{leading, onHandOver, draining},
		{draining, onAnswer, answered},
		{draining, onTakeOver, handedOver}, // by the link, of an older version
		{draining, onLate, resigning},
		{draining, onFail, leading},
		{answered, onTakeOver, handedOver},
		{answered, onLate, resigning},
		{answered, onFail, leading},

		{leading, onFollow, resigning},
		{draining, onFollow, resigning},
		{answered, onFollow, resigning},
		{resigning, onFollow, resigning},
		{resigning, onLead, leading},
		{resigning, onResign, following},
		{handedOver, onFollow, handedOver},
		{handedOver, onLead, leading},
		{handedOver, onResign, following},

		{following, onFollow, following},
		{following, onRequest, requesting},
		{following, onLead, promoted},
		{requesting, onFollow, following},
		{requesting, onFail, following},
		{requesting, onLead, promoted},

		{promoted, onFollow, following},
		{promoted, onReady, leading},
	}
}

// role is a server's state, and whom it follows.
type role struct {
	state  state
	leader replicas.Address // to follow; zero for none
	number int              // of the orders so far, to lead or to follow
}

// take takes an event, and reports whether it is possible.
func (r *role) take(e event) bool {
	for _, t := range transitions() {
		if t.from == r.state && t.on == e {
			r.state = t.to
			return true
		}
	}
	return false
}

// isLeader reports whether the server still has the stream of changes.
func (r *role) isLeader() bool { return r.state <= resigning }

// leads reports whether the server leads, and is to do so.
func (r *role) leads() bool { return r.state <= answered }

// handsOver reports whether a planned change is under way, on the old leader.
func (r *role) handsOver() bool { return r.state == draining || r.state == answered }
