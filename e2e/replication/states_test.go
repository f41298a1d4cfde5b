package replication

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cellserver/internal/test/processtest"
)

// TestEmptyLeaderIsNotFollowed: a replica keeps its states from a leader that has never had any, until
// somebody says what is to be.
func TestEmptyLeaderIsNotFollowed(t *testing.T) {
	t.Parallel()
	empty, replica := start(t), start(t)
	replica.charge(t, "a", 10)
	replica.follow(t, empty.Addr)
	replica.Eventually(t, "refuse to follow", func() bool {
		return strings.Contains(replica.field(t, "cell_link_error"), "the leader has never had a state")
	})
	replica.expect(t, "10", "DBSIZE")
	if !strings.Contains(replica.Log.String(), "the leader has never had a state") {
		t.Error("its log does not say so")
	}
	empty.expect(t, "OK", "REPLICAOF", "NO", "ONE")
	replica.awaitLink(t, "up")
	replica.expect(t, "0", "DBSIZE")

	flushed := start(t) // its history is an ordinary one
	flushed.charge(t, "a", 1)
	flushed.expect(t, "OK", "FLUSHALL")
	other := start(t)
	other.charge(t, "b", 10)
	other.follow(t, flushed.Addr)
	other.awaitLink(t, "up")
	other.expect(t, "0", "DBSIZE")
}

// loseFiles removes what a directory has of states, and leaves whom its server has followed.
func loseFiles(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{"MANIFEST", "log-*", "snapshot-*"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) == 0 && pattern != "snapshot-*" { // a leader may not have one yet
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLostStates: a server that led, and does not find its states at the start, leads nobody. It follows its
// last leader, refuses changes and says so, until it is told to lead, or has taken states again.
func TestLostStates(t *testing.T) {
	t.Parallel()
	dir, leader := t.TempDir(), start(t)
	leader.charge(t, "a", 100)
	replica := startReplica(t, leader.Addr, "--data-dir", dir)
	replica.await(t, "cell_states_kept", "yes")
	replica.promote(t)
	leader.awaitLink(t, "up")
	restart := func() *server {
		replica.crash(t)
		loseFiles(t, dir)
		s := start(t, "--data-dir", dir)
		s.await(t, "cell_states_kept", "missing")
		const refusal = "READONLY the data directory lacks the states that this server had"
		s.expect(t, refusal, "CL.THROTTLE", "a", 9, 1, 60)
		if f := s.fields(t, "replication"); f["role"] != "slave" || f["slave_priority"] != "0" || "127.0.0.1:"+f["master_port"] != leader.Addr {
			t.Errorf("it says %v", f)
		}
		if !strings.Contains(s.Log.String(), "it leads nobody, and refuses changes") {
			t.Error("its log does not say so")
		}
		return s
	}
	replica = restart()
	leader.expect(t, "100", "DBSIZE")
	leader.promote(t)
	replica.awaitLink(t, "up")
	replica.await(t, "cell_states_kept", "yes")
	replica.expect(t, "100", "DBSIZE")
	replica.expect(t, "READONLY You can't write against a read only replica", "CL.THROTTLE", "a", 9, 1, 60)

	replica.promote(t)
	leader.awaitLink(t, "up")
	leader.crash(t)
	replica = restart()
	replica.promote(t) // there is nothing else
	replica.await(t, "cell_states_kept", "yes")
	replica.expect(t, "0", "DBSIZE")
	replica.crash(t)
	replica = start(t, "--data-dir", dir)
	replica.await(t, "role", "master")
}

// TestLostStatesOfAPair: by --peer it takes the other one's states, and leads with them.
func TestLostStatesOfAPair(t *testing.T) {
	t.Parallel()
	a, b, dirs := processtest.FreeAddr(t), processtest.FreeAddr(t), [2]string{t.TempDir(), t.TempDir()}
	old := startAt(t, a, b, "--data-dir", dirs[0], "--peer-wait", "10ms")
	old.charge(t, "a", 100)
	next := startAt(t, b, a, "--data-dir", dirs[1])
	next.awaitLink(t, "up")
	next.promote(t)
	old.awaitLink(t, "up")
	next.crash(t)
	loseFiles(t, dirs[1])
	next = startAt(t, b, a, "--data-dir", dirs[1])
	next.await(t, "role", "master")
	next.expect(t, "100", "DBSIZE")
	next.await(t, "cell_states_kept", "yes")
	old.awaitLink(t, "up")
	old.expect(t, "100", "DBSIZE")
}

// TestLostStatesOfBoth: where the peer has not found its states, the other one starts, too: it leads if its
// directory is a new one, and if it has lost its own neither does, until somebody says which.
func TestLostStatesOfBoth(t *testing.T) {
	t.Parallel()
	for _, isNew := range []bool{true, false} {
		a, b, dirs := processtest.FreeAddr(t), processtest.FreeAddr(t), [2]string{t.TempDir(), t.TempDir()}
		old := startAt(t, a, b, "--data-dir", dirs[0], "--peer-wait", "10ms")
		old.charge(t, "a", 100)
		next := startAt(t, b, a, "--data-dir", dirs[1])
		next.awaitLink(t, "up")
		next.promote(t)
		old.awaitLink(t, "up")
		old.await(t, "cell_states_kept", "yes")
		next.crash(t)
		old.crash(t)
		loseFiles(t, dirs[1])
		if isNew {
			dirs[0] = t.TempDir()
		} else {
			loseFiles(t, dirs[0])
		}
		next = startAt(t, b, a, "--data-dir", dirs[1], "--peer-wait", "10ms")
		next.await(t, "cell_states_kept", "missing")
		old = startAt(t, a, b, "--data-dir", dirs[0])
		if !isNew {
			for _, s := range []*server{old, next} {
				s.expect(t, "READONLY the data directory lacks", "CL.THROTTLE", "a", 9, 1, 60)
			}
			old.promote(t)
		}
		next.awaitLink(t, "up")
		old.charge(t, "a", 10)
	}
}

// TestUpgradeOfAPair takes the steps of DEPLOY, also with a kill at each of them.
func TestUpgradeOfAPair(t *testing.T) {
	t.Parallel()
	a, b, dirs := processtest.FreeAddr(t), processtest.FreeAddr(t), [2]string{t.TempDir(), t.TempDir()}
	args := []string{"--fsync-interval", "0", "--fsync-timeout", "1h"}
	run := map[string]*server{}
	begin := func(at, peer, dir string, more ...string) {
		run[at] = startAt(t, at, peer, slices.Concat(args, []string{"--data-dir", dir}, more)...)
	}
	begin(a, b, dirs[0], "--peer-wait", "10ms")
	run[a].charge(t, "a", 1000)
	begin(b, a, dirs[1])
	run[b].awaitLink(t, "up")
	run[b].Stop(t, syscall.SIGTERM) // 1. Stop the replica, and start the new version.
	begin(b, a, dirs[1])
	run[b].awaitLink(t, "up")
	run[b].expect(t, "OK", "REPLICAOF", "NO", "ONE") // 2. Change the leader.
	run[b].await(t, "role", "master")
	run[b].charge(t, "b", 10)
	run[b].crash(t)
	begin(b, a, dirs[1])
	run[b].await(t, "role", "master")
	run[a].awaitLink(t, "up")
	run[a].Stop(t, syscall.SIGTERM) // 3. Stop the old leader, now a replica, and start the new version.
	begin(a, b, dirs[0])
	run[a].awaitLink(t, "up")
	for _, s := range run {
		s.expect(t, "1010", "DBSIZE")
	}
}

// TestSetUpAgain takes the steps of DEPLOY without --peer: a leader that has lost everything follows the
// promoted replica.
func TestSetUpAgain(t *testing.T) {
	t.Parallel()
	addr := processtest.FreeAddr(t)
	leader := start(t, "--addr", addr)
	leader.charge(t, "a", 100)
	replica := startReplica(t, addr)
	leader.inStep(t)
	leader.crash(t)
	leader = start(t, "--addr", addr) // as it was, which is a mistake
	replica.Eventually(t, "keep its states", func() bool {
		return strings.Contains(replica.field(t, "cell_link_error"), "the leader has never had a state")
	})
	leader.crash(t)
	replica.promote(t)
	leader = startReplica(t, replica.Addr, "--addr", addr)
	for _, s := range []*server{leader, replica} {
		s.expect(t, "100", "DBSIZE")
	}
}
