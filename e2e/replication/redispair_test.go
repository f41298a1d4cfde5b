package replication

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// pairs returns a leader and its replica of each kind: cellserver's and Redis's.
func pairs(t *testing.T) (ours, theirs [2]*server) {
	t.Helper()
	leader := start(t)
	ours = [2]*server{leader, startReplica(t, leader.Addr)}
	redis := startRedis(t, "--repl-diskless-sync-delay", "0")
	replica := startRedis(t, "--replicaof", "127.0.0.1 "+redis.Port())
	replica.awaitLink(t, "up")
	theirs = [2]*server{redis, replica}
	for _, pair := range [][2]*server{ours, theirs} {
		pair[0].Eventually(t, "have a replica", func() bool { return strings.Contains(pair[0].field(t, "slave0"), "state=online") })
	}
	return ours, theirs
}

// TestWaitBesideRedis: the same conversations about WAIT have the same replies.
func TestWaitBesideRedis(t *testing.T) {
	t.Parallel()
	ours, theirs := pairs(t)
	lonelyOurs, lonelyTheirs := start(t), startRedis(t)
	for _, tt := range []struct {
		name  string
		on    [2]*server
		calls string // FLUSHALL is a change
	}{
		{"with a replica", [2]*server{ours[0], theirs[0]}, "FLUSHALL|WAIT 1 0|WAIT 0 0|WAIT 1 100|WAIT 2 50|FLUSHALL|WAIT 1 60000"},
		{"without a replica", [2]*server{lonelyOurs, lonelyTheirs}, "FLUSHALL|WAIT 0 0|WAIT 1 20|WAIT 0 10|WAIT 5 1"},
		{"in a transaction", [2]*server{lonelyOurs, lonelyTheirs}, "MULTI|WAIT 1 0|EXEC"},
		{"on a replica", [2]*server{ours[1], theirs[1]}, "WAIT 0 0|WAIT 1 100|MULTI|WAIT 1 100|EXEC"},
		{"with mistakes", [2]*server{ours[0], theirs[0]}, "WAIT|WAIT 1|WAIT x 1|WAIT 1 x|WAIT 1 -1|WAIT 1 1 1|WAIT 1.5 1"},
	} {
		said := [2]string{}
		for i, s := range tt.on {
			said[i] = harness.SayTo(t, s.Dial(t), strings.ReplaceAll(tt.calls, "|", "\r\n")+"\r\nPING\r\n", "+PONG\r\n")
		}
		if said[0] != said[1] {
			t.Errorf("%s: got %q, and Redis %q", tt.name, said[0], said[1])
		}
	}
	// a change that may not be there yet is not counted
	const calls = "MULTI\r\nCL.THROTTLE a 99 1 60\r\nWAIT 0 0\r\nWAIT 1 0\r\nEXEC\r\nPING\r\n"
	if got := harness.SayTo(t, ours[0].Dial(t), calls, "+PONG\r\n"); !strings.HasSuffix(got, ":0\r\n:0\r\n+PONG\r\n") {
		t.Errorf("in a transaction: got %q", got)
	}
}

// TestRoleBesideRedis: ROLE has Redis's form on leaders and replicas.
func TestRoleBesideRedis(t *testing.T) {
	t.Parallel()
	ours, theirs := pairs(t)
	form := func(s, other *server) string {
		got := strings.ReplaceAll(harness.Reply(t, s.Dial(t), "ROLE"), other.Port(), "PORT")
		got = regexp.MustCompile(`\$\d+ (\d+|PORT)\b`).ReplaceAllString(got, "$$N $1")
		return regexp.MustCompile(`(:|\$N )\d+`).ReplaceAllString(got, "${1}N")
	}
	for i, name := range []string{"a leader", "a replica"} {
		if got, want := form(ours[i], ours[1-i]), form(theirs[i], theirs[1-i]); got != want {
			t.Errorf("%s: got %q, and Redis %q", name, got, want)
		}
	}
	for _, pair := range [][2]*server{ours, theirs} {
		pair[0].Stop(t, terminate)
		pair[1].Eventually(t, "see the link down", func() bool {
			return strings.Contains(harness.Reply(t, pair[1].Dial(t), "ROLE"), "connect ")
		})
	}
	states := []string{"connect", "connecting"}
	for _, pair := range [][2]*server{ours, theirs} {
		if got := strings.Fields(harness.Reply(t, pair[1].Dial(t), "ROLE")); len(got) < 9 || !slices.Contains(states, got[7]) {
			t.Errorf("got %q", got)
		}
	}
}

// TestInfoBesideRedis: INFO replication has Redis's fields in Redis's form, and more of its own.
func TestInfoBesideRedis(t *testing.T) {
	t.Parallel()
	ours, theirs := pairs(t)
	form := func(value string) string {
		value = regexp.MustCompile(`[0-9a-f]{40}`).ReplaceAllString(value, "ID")
		return regexp.MustCompile(`-?\d+`).ReplaceAllString(value, "N")
	}
	compare := func(name string, us, them *server, without ...string) {
		t.Helper()
		got, want := us.fields(t, "replication"), them.fields(t, "replication")
		maps.DeleteFunc(want, func(field, _ string) bool { return slices.Contains(without, field) })
		for field, value := range want {
			if own, ok := got[field]; !ok || form(own) != form(value) {
				t.Errorf("%s: %s is %q, and of Redis %q", name, field, own, value)
			}
		}
		for field := range got {
			if _, ok := want[field]; !ok && !strings.HasPrefix(field, "cell_") {
				t.Errorf("%s: there is %s, which Redis has not", name, field)
			}
		}
	}
	compare("a leader", ours[0], theirs[0])
	compare("a replica", ours[1], theirs[1])
	for _, pair := range [][2]*server{ours, theirs} {
		pair[0].Stop(t, terminate)
		pair[1].awaitLink(t, "down")
	}
	compare("a replica without its leader", ours[1], theirs[1])
	for _, pair := range [][2]*server{ours, theirs} {
		pair[1].expect(t, "OK", "REPLICAOF", "NO", "ONE")
		pair[1].await(t, "role", "master")
	}
	compare("a promoted replica", ours[1], theirs[1])
}
