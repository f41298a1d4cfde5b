package replication

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// limitsFile is a file of limits that a test rewrites.
type limitsFile string

func newLimitsFile(t *testing.T, limits ...string) limitsFile {
	t.Helper()
	f := limitsFile(filepath.Join(t.TempDir(), "limits.yml"))
	f.write(t, limits...)
	return f
}

// write has each limit allow as many calls as follow its name.
func (f limitsFile) write(t *testing.T, limits ...string) {
	t.Helper()
	text := "limits:\n"
	for _, limit := range limits {
		name, count, _ := strings.Cut(limit, " ")
		text += "  " + name + ": {rules: [{algorithm: fixed_window, max_count: " + count + ", period: 1h}]}\n"
	}
	text += "plans:\n  free: {rules: [{algorithm: fixed_window, max_count: " + limits[0][len(limits[0])-1:] + ", period: 1h}]}\n"
	if err := os.WriteFile(string(f), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// allows expects how many calls a limit allows a new key.
func (s *server) allows(t *testing.T, limit, want string) {
	t.Helper()
	s.expect(t, "[0 "+want+" "+want+" ", "CL.CHECK", limit, "new", 0)
}

// TestFilesOfLimitsDiffer: a replica whose file of limits is not its leader's says so, until both agree.
func TestFilesOfLimitsDiffer(t *testing.T) {
	t.Parallel()
	of, own := newLimitsFile(t, "api 5", "login 3"), newLimitsFile(t, "api 5", "login 3")
	leader := start(t, "--limits-file", string(of))
	replica := startReplica(t, leader.Addr, "--limits-file", string(own))
	const differs, again = "named limits of this replica are not its leader's", "this replica has the named limits of its leader"
	count := func(text string) int { return strings.Count(replica.Log.String(), text) }

	of.write(t, "api 9", "login 3")
	leader.expect(t, "OK", "CL.LIMIT", "RELOAD")
	replica.await(t, "cell_limits_differ", "2")
	if names := replica.field(t, "cell_limits_differing"); names != "api, plan free" {
		t.Errorf("%q differ", names)
	}
	log := replica.Logged(t, differs)
	if !strings.Contains(log, `"limits":"api, plan free"`) || !strings.Contains(log, "send CL.LIMIT RELOAD to both") {
		t.Errorf("the log is\n%s", log)
	}
	if got := replica.Metric(t, "cellserver_replication_limits_differ"); got != 2 {
		t.Errorf("the metric is %g", got)
	}
	if _, page := replica.Fetch(t, "/?lang=en", ""); !strings.Contains(page, "Named limits of this replica are not its leader") || !strings.Contains(page, "api, plan free") {
		t.Error("the page does not show it")
	}

	// What a command defines follows, and is no difference.
	leader.expect(t, "OK", "CL.LIMIT", "SET", "extra", "FIXEDWINDOW", 7, 3600)
	replica.Eventually(t, "know extra", func() bool { return strings.HasPrefix(replica.say(t, "CL.CHECK", "extra", "new", 0), "[0 7") })

	own.write(t, "api 9", "login 3")
	replica.expect(t, "OK", "CL.LIMIT", "RELOAD")
	replica.await(t, "cell_limits_differ", "0")
	replica.Logged(t, again)
	if count(differs) != 1 || count(again) != 1 || replica.field(t, "cell_limits_differing") != "" {
		t.Errorf("%d and %d lines", count(differs), count(again))
	}

	// A name that the replica's file takes from the leader's command comes back with it.
	own.write(t, "api 9", "login 3", "extra 8")
	replica.expect(t, "OK", "CL.LIMIT", "RELOAD")
	replica.await(t, "cell_limits_differing", "extra")
	replica.allows(t, "extra", "8")
	own.write(t, "api 9", "login 3")
	replica.expect(t, "OK", "CL.LIMIT", "RELOAD")
	replica.await(t, "cell_limits_differ", "0")
	replica.allows(t, "extra", "7")

	// After a failover the new numbers hold, and a leader reports no difference.
	of.write(t, "api 6")
	leader.expect(t, "OK", "CL.LIMIT", "RELOAD")
	replica.await(t, "cell_limits_differing", "api, login, plan free")
	replica.promote(t)
	replica.Logged(t, "this server decides by its own named limits, which were not those of its leader")
	if info := replica.say(t, "INFO", "replication"); strings.Contains(info, "cell_limits_differ") {
		t.Errorf("a leader has %s", info)
	}
	leader.follow(t, replica.Addr)
	leader.await(t, "cell_limits_differing", "api, login, plan free")
	of.write(t, "api 9", "login 3")
	leader.expect(t, "OK", "CL.LIMIT", "RELOAD")
	leader.await(t, "cell_limits_differ", "0")
	leader.allows(t, "api", "9")
	leader.allows(t, "extra", "7")
}

// TestOneFileOfLimits: a pair in which only one server has a file is found out, whichever it is.
func TestOneFileOfLimits(t *testing.T) {
	t.Parallel()
	file := harness.WriteFile(t, "limits:\n  api: {rules: [{algorithm: fixed_window, max_count: 5, period: 1h}]}\n")
	with, without := start(t, "--limits-file", file), start(t)
	for _, pair := range [][2]*server{{with, without}, {without, with}} {
		leader, replica := pair[0], pair[1]
		replica.follow(t, leader.Addr)
		replica.await(t, "cell_limits_differing", "api")
		replica.promote(t)
	}
	// Set by command with the same numbers, they agree.
	without.awaitLink(t, "up")
	without.promote(t)
	without.expect(t, "OK", "CL.LIMIT", "SET", "api", "FIXEDWINDOW", 5, 3600)
	with.awaitLink(t, "up")
	with.await(t, "cell_limits_differ", "0")
	without.expect(t, "OK", "CL.LIMIT", "SET", "api", "FIXEDWINDOW", 6, 3600)
	with.await(t, "cell_limits_differing", "api")
	without.expect(t, "OK", "CL.LIMIT", "SET", "api", "FIXEDWINDOW", 5, 3600)
	with.await(t, "cell_limits_differ", "0")
}
