package replication

import (
	"time"

	"cellserver/internal/store"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
)

type Disk interface {
	// Renew writes all states anew, at once, as they were replaced. Status says when a start would find them.
	Renew()
	Status() store.Durability
}

// How the states are kept, by what happens:
//
//	any but NotKept   another server's states are about to replace them    KeptLater
//	KeptLater         a manifest names a snapshot of them                  IsKept
//	any but Missing   the directory has a fault                            KeptFaulty
//	KeptFaulty        the fault is over                                    IsKept, or KeptLater
//	at the start      ROLE names files that are not there, or none         Missing
//	Missing           the operator has it lead with what there is          IsKept
//
// Only with IsKept does ROLE name files, and so lead after a start. A replica with KeptLater is not online.
func keptAs(st *store.Durability, missing, replacing bool) replicas.Kept {
	switch {
	case missing:
		return replicas.Missing
	case st.Fault != nil:
		return replicas.KeptFaulty
	case replacing || st.Renewing || st.Generation == 0:
		return replicas.KeptLater
	}
	return replicas.IsKept
}

// statusOfKept is keptAs by the disk's present status.
func (n *Node) statusOfKept(missing, replacing bool) replicas.Kept {
	if n.config.Disk == nil {
		return replicas.NotKept
	}
	st := n.config.Disk.Status()
	return keptAs(&st, missing, replacing)
}

// KeepRole writes the role in the background, without a place: more may change. It is called after what a
// start would find has changed, too.
func (n *Node) KeepRole() {
	if n.config.Dir != nil {
		go n.writeRole(false)
	}
}

// Bounds of the wait for a disk that hangs:
const (
	roleWait   = time.Second
	changeWait = replicas.LeastBound / 2 // of each server in a planned change
)

// keepRoleFirst writes the role before something that relies on it.
func (n *Node) keepRoleFirst(most time.Duration) {
	if n.config.Dir == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.writeRole(false)
	}()
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// replace replaces the states by those of a full sync. Until a manifest names a snapshot of them, a start
// would find others, so ROLE names none.
func (n *Node) replace(by *leaderLink) {
	n.setReplacing(true)
	n.keepRoleFirst(roleWait)
	n.config.Store.Replace(by.beside)
	by.beside = nil
	if n.config.Disk != nil {
		n.config.Disk.Renew()
	}
	n.setReplacing(false)
	n.KeepRole()
}

func (n *Node) setReplacing(replacing bool) {
	n.mu.Lock()
	defer n.unlock()
	if n.replacing = replacing; replacing {
		return
	}
	if n.hasHad = true; n.missing {
		n.missing = false
		if n.role.leader != (replicas.Address{}) {
			n.config.Gate.Close(gate.Replica, 0, n.readOnlyLocked(n.role.leader))
		}
	}
}

// acceptLocked has this server lead with what it has, by order.
func (n *Node) acceptLocked() {
	n.hasHad = true
	if !n.missing {
		return
	}
	n.missing = false
	n.config.Log.Warn("this server leads with what it has found, as it was told to")
	if n.role.leader == (replicas.Address{}) {
		n.config.Gate.Open(gate.Replica)
	}
	n.KeepRole()
}

// beginWithout has a server that has not found its states lead nobody.
func (n *Node) beginWithout(follow replicas.Address) {
	n.config.Log.Warn("the data directory lacks the states that this server had: it leads nobody, and refuses changes",
		"follows", follow.String(), "hint", "it takes the states of the server that it follows, if that leads; REPLICAOF NO ONE has it lead with what it has")
	n.config.Gate.Close(gate.Replica, 0, missingStates)
}

const missingStates gate.Refusal = "READONLY the data directory lacks the states that this server had; REPLICAOF NO ONE has it lead with what it has"

// readOnlyLocked is the error for changes on a replica.
func (n *Node) readOnlyLocked(leader replicas.Address) gate.Refusal {
	if n.missing {
		return missingStates + gate.Refusal(", and until then it follows "+leader.String())
	}
	return gate.Refusal("READONLY You can't write against a read only replica: the leader is " + leader.String())
}
