package replication

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// heardNode returns a replica that has last heard its leader some time ago.
func heardNode(link replicas.Link, isAsked bool, ago time.Duration) *Node {
	n := newNode(disktest.New())
	n.last = replicas.Address{Host: "a", Port: 1}
	n.role = role{state: following, leader: n.last}
	n.link, n.isAsked, n.heard = link, isAsked, time.Now().Add(-ago)
	return n
}

func (n *Node) wantsToLead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.role.leader == (replicas.Address{})
}

// TestSilence: a leader is silent that leaves a question unanswered for the bound, or to which there is no
// connection as long; not while its replica applies what it has sent.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		link    replicas.Link
		isAsked bool
		ago     time.Duration
		after   time.Duration // this server leads; 0 for never
	}{
		{replicas.LinkConnected, true, 0, time.Second},
		{replicas.LinkConnected, false, time.Hour, 0},
		{replicas.LinkSync, true, 100 * time.Millisecond, 900 * time.Millisecond},
		{replicas.LinkSync, false, time.Hour, 0}, // the full sync's states replace the present ones
		{replicas.LinkConnecting, false, 400 * time.Millisecond, 600 * time.Millisecond},
		{replicas.LinkConnect, false, time.Hour, time.Nanosecond},
		{replicas.LinkConnected, true, time.Hour, time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := heardNode(tt.link, tt.isAsked, tt.ago)
			if err := n.Lead(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(tt.after - time.Nanosecond)
			if n.wantsToLead() != (tt.after == time.Nanosecond) {
				t.Errorf("%+v: it leads too early, or late", tt)
			}
			time.Sleep(2 * leastRetry)
			if n.wantsToLead() != (tt.after > 0) {
				t.Errorf("%+v: it leads: %t", tt, n.wantsToLead())
			}
			n.Follow(replicas.Address{Host: "b", Port: 1}) // which ends looking
			time.Sleep(time.Minute)
		})
	}
}

// TestSilenceOfThisProcess: a process that has stood still, with its leader's answer unread, goes on
// following.
func TestSilenceOfThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := heardNode(replicas.LinkConnected, true, 10*time.Second)
		if err := n.Lead(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		for range 100 { // it reads the answer, and asks again
			n.setAsked(false)
			n.setAsked(true)
			time.Sleep(replicas.NextTime)
		}
		if st := n.Status(); n.wantsToLead() || !st.HandingOver || st.Counts.HandoverTimeouts != 0 {
			t.Errorf("it is %+v", st)
		}
		n.Follow(replicas.Address{Host: "b", Port: 1})
		time.Sleep(time.Minute)
	})
}

// renewing is a disk on which no snapshot of the states is complete.
type renewing struct{}

func (renewing) Renew() {}

func (renewing) Status() store.Durability { return store.Durability{Renewing: true, Generation: 1} }

// TestChangeBeforeTheDisk: a replica whose states are not on its disk yet is refused as the one to lead, also
// after its link was down meanwhile.
func TestChangeBeforeTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, 0, 0)
		defer m.end()
		m.a.patience = replicas.NextTime
		m.cut()
		b := m.b.node
		b.config.Disk = renewing{}
		c, err := b.connect(t.Context(), m.a.at)
		if err != nil {
			t.Fatal(err)
		}
		f, err := b.start(t.Context(), c, false)
		if err != nil || f.beside != nil {
			t.Fatalf("it does not go on: %v", err)
		}
		ctx, end := context.WithCancel(t.Context())
		go func() {
			var err error
			for err == nil && ctx.Err() == nil {
				err = f.next(ctx)
			}
		}()
		time.Sleep(2 * time.Second)
		if st := b.Status(); st.Link != replicas.LinkSync || st.Priority != 0 {
			t.Errorf("its link is %s, priority %d", st.Link, st.Priority)
		}
		if err := b.Lead(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if st := b.Status(); st.HandingOver || st.HandoverError == nil || st.Counts.HandoverFailures != 1 || b.wantsToLead() {
			t.Errorf("it is %+v", st)
		}
		end()
		time.Sleep(time.Second)
	})
}
