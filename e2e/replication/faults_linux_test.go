package replication

import (
	"testing"

	"golang.org/x/sys/unix"
)

// fill has all writes to files fail, as on a full disk, or ends that.
func (s *server) fill(t *testing.T, isFull bool) {
	t.Helper()
	var limit unix.Rlimit
	pid := s.Cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
		t.Skip("cannot limit the size of files:", err)
	}
	if limit.Cur = limit.Max; isFull {
		limit.Cur = 0
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Skip("cannot limit the size of files:", err)
	}
}

// TestFaultyDirectoryCountsAsNone: a replica whose disk is full follows as if it had no directory. It says
// so, and after a kill it does not lead with what its disk had before.
func TestFaultyDirectoryCountsAsNone(t *testing.T) {
	t.Parallel()
	dir, leader := t.TempDir(), start(t)
	leader.charge(t, "a", 10)
	replica := startReplica(t, leader.Addr, "--data-dir", dir)
	replica.await(t, "cell_states_kept", "yes")
	replica.fill(t, true)
	leader.charge(t, "b", 990)
	replica.await(t, "cell_states_kept", "fault")
	replica.follow(t, "127.0.0.1:1")
	leader.Eventually(t, "lose its replica", func() bool { return leader.field(t, "connected_slaves") == "0" })
	leader.charge(t, "c", 10)
	replica.follow(t, leader.Addr)
	replica.awaitLink(t, "up")
	leader.inStep(t)
	if f := replica.fields(t, "replication"); f["slave_priority"] != "100" || f["cell_states_kept"] != "fault" {
		t.Errorf("it says %v", f)
	}
	replica.promote(t)
	leader.awaitLink(t, "up")
	replica.crash(t)
	replica = start(t, "--data-dir", dir)
	replica.await(t, "cell_states_kept", "missing")
	replica.expect(t, "READONLY the data directory lacks", "CL.THROTTLE", "a", 9, 1, 60)
	leader.expect(t, "1010", "DBSIZE")
	leader.promote(t)
	replica.awaitLink(t, "up")
	replica.expect(t, "1010", "DBSIZE")

	replica.fill(t, true) // and one that is mended counts again
	leader.charge(t, "d", 10)
	replica.await(t, "cell_states_kept", "fault")
	replica.fill(t, false)
	replica.await(t, "cell_states_kept", "yes")
}
