package replication

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

const terminate = syscall.SIGTERM

// startingAt starts a server of a pair, without waiting until it is ready.
func startingAt(t *testing.T, addr, peer string, args ...string) *harness.Process {
	t.Helper()
	p := harness.Start(t, harness.Command(t, append([]string{"--addr", addr, "--peer", peer, "--peer-wait", "2s", "--metrics-addr", "127.0.0.1:0", "--log-format", "json"}, args...)...))
	p.Addr = addr
	return p
}

func (s *server) isReady() bool { return s.ReadReady() || s.HasExited() }

func startAt(t *testing.T, addr, peer string, args ...string) *server {
	t.Helper()
	p := startingAt(t, addr, peer, append([]string{"--peer-wait", "1m"}, args...)...) // a peer that answers is not waited for
	s := &server{p, harness.Database(t, p, 0)}
	s.Eventually(t, "be ready", s.isReady)
	return s
}

// TestPeersStartEmpty: of two servers that start together, one leads and the other follows.
func TestPeersStartEmpty(t *testing.T) {
	t.Parallel()
	a, b := processtest.FreeAddr(t), processtest.FreeAddr(t)
	first, second := startingAt(t, a, b), startingAt(t, b, a)
	pair := []*server{{first, harness.Database(t, first, 0)}, {second, harness.Database(t, second, 0)}}
	for _, s := range pair {
		s.Eventually(t, "be ready", s.isReady)
	}
	first.Eventually(t, "agree with the other", func() bool {
		return pair[0].field(t, "role") != pair[1].field(t, "role") && (pair[0].field(t, "master_link_status") == "up" || pair[1].field(t, "master_link_status") == "up")
	})
	leader, replica := pair[0], pair[1]
	if leader.field(t, "role") == "slave" {
		leader, replica = replica, leader
	}
	leader.charge(t, "a", 10)
	leader.inStep(t)
	sameStates(t, replica.dumps(t), leader.dumps(t))
}

// TestEmptyRestartOfALeader: a leader that is started again at once, and has kept nothing, takes the states
// of its replica, which keeps them and goes on following.
func TestEmptyRestartOfALeader(t *testing.T) {
	t.Parallel()
	a, b := processtest.FreeAddr(t), processtest.FreeAddr(t)
	leader := startAt(t, a, b, "--peer-wait", "2s")
	if !strings.Contains(leader.Log.String(), "the peer does not answer") {
		t.Error("it does not say that the peer does not answer")
	}
	leader.charge(t, "a", 100)
	leader.do(t, "CL.LIMIT", "SET", "named", "FUNNEL", 9, 1, 600_000)
	leader.do(t, "CL.LIMIT", "OVERRIDE", "named", "x", "DENY")
	replica := startAt(t, b, a)
	replica.awaitLink(t, "up")
	leader.inStep(t)
	want := leader.dumps(t)
	for range 2 {
		leader.crash(t)
		leader = startAt(t, a, b)
		leader.await(t, "role", "master")
		sameStates(t, leader.dumps(t), want)
		leader.expect(t, "[named]", "CL.LIMIT", "LIST")
		leader.expect(t, "[1 ", "CL.CHECK", "named", "x", 1)
		replica.awaitLink(t, "up")
		sameStates(t, replica.dumps(t), want)
		leader.charge(t, "b", 10)
		leader.inStep(t)
		want = leader.dumps(t)
		sameStates(t, replica.dumps(t), want)
		if f := leader.fields(t, "replication"); f["cell_full_syncs"] > "1" || f["cell_partial_syncs"] < "1" {
			t.Errorf("the restarted leader says %v", f)
		}
	}
}

// TestPeerLeads: a server whose peer leads follows it, whatever it has kept itself.
func TestPeerLeads(t *testing.T) {
	t.Parallel()
	a, b, dir := processtest.FreeAddr(t), processtest.FreeAddr(t), t.TempDir()
	old := startAt(t, a, b, "--data-dir", dir, "--peer-wait", "2s")
	old.charge(t, "a", 100)
	next := startAt(t, b, a)
	next.awaitLink(t, "up")
	old.inStep(t)
	old.charge(t, "a", 100)
	old.crash(t)
	next.awaitLink(t, "down")
	next.promote(t)
	next.charge(t, "b", 10)
	old = startAt(t, a, b, "--data-dir", dir)
	old.awaitLink(t, "up")
	next.inStep(t)
	sameStates(t, old.dumps(t), next.dumps(t))
	old.expect(t, "READONLY ", "CL.THROTTLE", "a", 9, 1, 60)

	// now the other one returns
	next.Stop(t, terminate)
	old.awaitLink(t, "down")
	old.promote(t)
	next = startAt(t, b, a)
	next.awaitLink(t, "up")
	old.inStep(t)
	sameStates(t, next.dumps(t), old.dumps(t))
}

// TestPeerIsItself: a peer that is the server itself is a mistake that ends the start.
func TestPeerIsItself(t *testing.T) {
	t.Parallel()
	addr := processtest.FreeAddr(t)
	code, said := harness.RefusedStart(t, "--addr", addr, "--peer", addr)
	if code == 0 || !strings.Contains(said, "--peer is this server itself") {
		t.Errorf("it ends with %d, and says %s", code, said)
	}
}

// TestTwoLeadersMeet: of a pair that was apart, the old leader follows the promoted one once it sees it. If
// neither's states go on from the other's, both say so and nobody yields, until one is told to follow.
func TestTwoLeadersMeet(t *testing.T) {
	t.Parallel()
	var links [2]*link
	for i := range links {
		links[i] = newLink(t, "")
	}
	begin := func(i int, wait string) *server {
		_, port, _ := net.SplitHostPort(links[i].addr)
		s := start(t, "--peer", links[1-i].addr, "--peer-wait", wait, "--replica-announce-ip", "127.0.0.1", "--replica-announce-port", port)
		links[i].lead(s.Addr)
		return s
	}
	apart := func() {
		for _, k := range links {
			k.cut()
		}
	}
	meet := func() {
		for _, k := range links {
			k.mend()
		}
	}
	apart() // nothing to lead to yet
	a := begin(0, "1s")
	meet()
	b := begin(1, "1m")
	b.awaitLink(t, "up")
	a.charge(t, "a", 10)
	a.inStep(t)
	apart()
	b.awaitLink(t, "down")
	b.promote(t)
	b.charge(t, "b", 10)
	a.charge(t, "c", 10)
	meet()
	a.awaitLink(t, "up")
	b.inStep(t)
	sameStates(t, a.dumps(t), b.dumps(t))
	a.expect(t, "READONLY ", "CL.THROTTLE", "a", 9, 1, 60)

	apart()
	a.crash(t)
	a = begin(0, "1s")
	meet()
	for _, s := range []*server{a, b} {
		s.await(t, "cell_peer_leads", "1")
		if got := s.field(t, "role"); got != "master" {
			t.Errorf("it is a %s", got)
		}
	}
	a.Logged(t, "two servers lead, and neither's states go on from the other's")
	a.follow(t, links[1].addr)
	a.awaitLink(t, "up")
	b.await(t, "cell_peer_leads", "0")
	sameStates(t, a.dumps(t), b.dumps(t))
}
