package replication

import (
	"math/rand/v2"
	"testing"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// soundDisk has all states.
type soundDisk struct{}

func (soundDisk) Renew() {}

func (soundDisk) Status() store.Durability { return store.Durability{Generation: 7} }

// TestRefusedAcceptance: a server without its states that is told to lead, and refuses, still lacks them.
func TestRefusedAcceptance(t *testing.T) {
	n := heardNode(replicas.LinkSync, true, 0)
	n.config.Disk = soundDisk{}
	n.missing = true
	n.trips.add(2 * time.Second)
	if err := n.Lead(); err == nil {
		t.Fatal("over a slow link it does not refuse")
	}
	if st := n.Status(); st.Kept != replicas.Missing || st.Priority != 0 || n.hasHad {
		t.Errorf("it is %+v", st)
	}
	n.trips = trips{}
	n.link, n.isAsked, n.heard = replicas.LinkConnect, false, time.Time{}
	if err := n.Lead(); err != nil {
		t.Fatal(err)
	}
	if st := n.Status(); st.Kept != replicas.IsKept || !n.wantsToLead() || !n.hasHad {
		t.Errorf("without a leader it is %+v", st)
	}
}

// TestRoleOnAFullDiskOutlastsACrash: a role that cannot be written names no states after a crash, either.
func TestRoleOnAFullDiskOutlastsACrash(t *testing.T) {
	for seed := range uint64(20) {
		dir := disktest.New()
		n := newNode(dir)
		n.config.Disk, n.file.stage = soundDisk{}, roleKept
		n.role = role{state: following, leader: replicas.Address{Host: "a", Port: 1}, number: 1}
		n.writeRole(false)
		dir.Before = func(op disktest.Op, _ string) error {
			if op == disktest.Create {
				return errNoSpace
			}
			return nil
		}
		n.replacing = true
		n.writeRole(false)
		after := newNode(dir.Crash(rand.New(rand.NewPCG(seed, 1))))
		if kept, err := after.readRole(); err != nil || kept == nil || kept.states != 0 {
			t.Fatalf("seed %d: it is %+v, %v", seed, kept, err)
		}
	}
}

// TestHandedOverRoleIsKeptFirst: the new leader's word follows the old one's role on its disk, or a start
// after a crash would find another leader there.
func TestHandedOverRoleIsKeptFirst(t *testing.T) {
	dir := disktest.New()
	n := newNode(dir)
	if err := n.Begin(t.Context(), Beginning{}); err != nil {
		t.Fatal(err)
	}
	to := &replica{client: replicas.Client{ID: 1, Address: replicas.Address{Host: "b", Port: 1}}, online: true, activeNs: n.config.Clock.Now()}
	n.replicas[1] = to
	handed := make(chan error, 1)
	n.HandOver(replicas.Handover{Client: 2, To: to.client.Address, History: n.history, Within: time.Minute}, func(_ int64, _ []byte, err error) {
		handed <- err
	})
	n.Round()
	if err := <-handed; err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.TakeOver(2, n.backlog.end); err != nil {
		t.Fatal(err)
	}
	want := keptRole{leader: to.client.Address}
	if got := dir.Crash(rand.New(rand.NewPCG(1, 1))); string(got.Contents(RoleName)) != string(want.text()) {
		t.Errorf("it has answered, and keeps %q", got.Contents(RoleName))
	}
	if err := n.config.Gate.Refusal(); err == nil {
		t.Error("it accepts changes")
	}
}
