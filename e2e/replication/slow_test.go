package replication

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slowPair returns a leader and its replica, between which both ways have a round trip, once they are in
// step.
func slowPair(t *testing.T, roundTrip time.Duration) (leader, replica *server, links [2]*link) {
	t.Helper()
	for i := range links {
		links[i] = newLink(t, "")
	}
	at := func(k *link) []string {
		_, port, _ := net.SplitHostPort(k.addr)
		return []string{"--replica-announce-ip", "127.0.0.1", "--replica-announce-port", port}
	}
	leader = start(t, at(links[0])...)
	links[0].lead(leader.Addr)
	replica = startReplica(t, links[0].addr, at(links[1])...)
	links[1].lead(replica.Addr)
	for _, k := range links {
		k.slow(roundTrip)
	}
	replica.Eventually(t, "measure the round trip", func() bool { return replica.roundTrip(t) >= roundTrip })
	leader.inStep(t)
	return leader, replica, links
}

func (s *server) roundTrip(t *testing.T) time.Duration {
	t.Helper()
	us, _ := strconv.Atoi(s.field(t, "cell_round_trip_usec"))
	return time.Duration(us) * time.Microsecond
}

// TestChangesOverSlowLinks: at each round trip a planned change leaves one leader, which the other one
// follows, and loses nothing; so does the change back.
func TestChangesOverSlowLinks(t *testing.T) {
	t.Parallel()
	roundTrips := []int{1, 160, 50, 200, 300, 1000}
	if testing.Short() {
		roundTrips = roundTrips[:2]
	}
	for _, ms := range roundTrips {
		roundTrip := time.Duration(ms) * time.Millisecond
		t.Run(fmt.Sprint(roundTrip), func(t *testing.T) { // one at a time, for what takes the processors may seem silent
			inTime(t, func() string { return changeOverSlowLink(t, roundTrip) })
		})
	}
}

func changeOverSlowLink(t *testing.T, roundTrip time.Duration) (prevented string) {
	t.Helper()
	leader, replica, _ := slowPair(t, roundTrip)
	for range 2 {
		before, taken := replica.field(t, "cell_handovers"), leader.field(t, "cell_full_syncs_taken")
		if !changeLeader(t, leader, replica) {
			return notHandedOver
		}
		leader.expect(t, "READONLY ", "CL.THROTTLE", "a", 9, 1, 60)
		if f := replica.fields(t, "replication"); f["cell_handovers"] == before {
			t.Errorf("it says %v", f)
		}
		if leader.field(t, "cell_full_syncs_taken") != taken {
			return "the old leader has taken all states" // the replica's clock was set by what it had read late
		}
		leader, replica = replica, leader
		replica.Eventually(t, "measure the round trip", func() bool { return replica.roundTrip(t) >= roundTrip })
	}
	return ""
}

var tooSlow = regexp.MustCompile(`^the round trip to the leader is \d{4,} ms.* a planned change is possible up to 1500 ms`)

// TestChangeOverTooSlowALink: a change over a link that is too slow is refused in a line, and the leader
// leads on; so it is with one that becomes too slow for the bound meanwhile.
func TestChangeOverTooSlowALink(t *testing.T) {
	t.Parallel()
	leader, replica, links := slowPair(t, time.Millisecond)
	for _, k := range links {
		k.slow(2 * time.Second)
	}
	replica.Eventually(t, "measure the round trip", func() bool { return replica.roundTrip(t) >= 2*time.Second })
	if got := replica.say(t, "REPLICAOF", "NO", "ONE"); !tooSlow.MatchString(strings.TrimPrefix(got, "ERR ")) || strings.Contains(got, "\n") {
		t.Errorf("got %q", got)
	}
	leader.charge(t, "a", 1)
	for s, role := range map[*server]string{leader: "master", replica: "slave"} {
		if f := s.fields(t, "replication"); f["role"] != role || f["cell_handovers"] != "0" || f["cell_handover_timeouts"] != "0" {
			t.Errorf("it says %v", f)
		}
	}
	if f := replica.fields(t, "replication"); f["cell_handover_failures"] != "1" || !tooSlow.MatchString(f["cell_handover_error"]) {
		t.Errorf("the replica says %v", f)
	}
}
