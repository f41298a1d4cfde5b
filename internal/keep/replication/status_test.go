package replication

import (
	"runtime"
	"testing"
)

// TestStatusWhileKeysAreHeld: EXEC asks for the status while it holds all keys, for which a change of the
// Node waits.
func TestStatusWhileKeysAreHeld(t *testing.T) {
	n := newModelOfOne(t)
	n.becomeLeader()
	held := n.config.Store.BeginAll(n.config.Clock.Now())
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		n.Change(func(s *Settings) { s.MinReplicas = 1 }) // which closes the gate
	}()
	for n.mu.TryLock() {
		n.mu.Unlock()
		runtime.Gosched()
	}
	if st := n.Status(); st.MinReplicas != 0 || n.Settings().MinReplicas != 0 || n.Starting() != "no" {
		t.Errorf("it is %+v", st)
	}
	held.End()
	<-changed
	if st := n.Status(); st.MinReplicas != 1 || n.config.Gate.Refusal() == nil {
		t.Errorf("then it is %+v", st)
	}
}
