package replication

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
)

// looksOf change nothing, and are answered by every server.
func looksOf() [][]any {
	return [][]any{
		call("CL.THROTTLE", "a", 99, 1, funnelPeriod, 0), call("CL.PEEK", "a", 99, 1, funnelPeriod), call("CL.BUCKET", "LEN", "bucket"),
		call("CL.CONCURRENCY", "LEN", "leases"), call("GET", "a"), call("CL.LIMIT", "EXPLAIN", "named", "x"), call("CL.CHECK", "named", "x", 0),
		call("EXISTS", "a", "bucket"), call("PTTL", "bucket"), call("SCAN", 0, "MATCH", "named*"), call("DBSIZE"), call("DUMP", "a"), call("PING"),
		call("CL.FIXEDWINDOW", "window", 9, 600_000, 0), call("CL.LIMIT", "LIST"), call("EVAL_RO", "return redis.call('exists', KEYS[1])", 1, "a"),
		call("GET", "counter"), call("INCREX", "counter", "UBOUND", 0, "EX", 5), call("INCREX", "none", "XX", "BYFLOAT", 1), call("MGET", "counter", "text", "none"), call("STRLEN", "text"), call("PEXPIRETIME", "text"),
	}
}

// TestReplicaLooks: a replica answers looks as its leader does, also while its link is down, and refuses
// changes with the leader's address.
func TestReplicaLooks(t *testing.T) {
	t.Parallel()
	leader, replica, between := pairOver(t)
	for _, c := range [][]any{
		call("CL.THROTTLE", "a", 99, 1, funnelPeriod), call("CL.BUCKET", "ADD", "bucket", 9, 3), call("CL.CONCURRENCY", "ACQUIRE", "leases", 3, funnelPeriod, "x"),
		call("CL.LIMIT", "SET", "named", "FUNNEL", 9, 1, 600_000), call("CL.CHECK", "named", "x"), call("CL.FIXEDWINDOW", "window", 9, 600_000),
		call("INCR", "counter"), call("SET", "text", "x", "EX", funnelPeriod), call("SET", "ends", "x", "PX", 50),
	} {
		leader.do(t, c...)
	}
	leader.inStep(t)
	last := regexp.MustCompile(` \d+(\]+)$`)
	seconds := func(reply string) string { return last.ReplaceAllString(reply, "$1") } // but those until everything is available
	for _, s := range []*server{leader, replica} {
		s.Eventually(t, "lose the key that expires", func() bool { return s.say(t, "EXISTS", "ends") == "0" })
	}
	for _, link := range []string{"up", "down"} {
		replica.awaitLink(t, link)
		for _, c := range looksOf() {
			if got, want := seconds(replica.say(t, c...)), seconds(leader.say(t, c...)); got != want || strings.HasPrefix(got, "ERR") {
				t.Errorf("link %s: %v: got %s, want %s", link, c, got, want)
			}
		}
		readOnly := "READONLY You can't write against a read only replica: the leader is " + between.addr
		for _, c := range [][]any{
			call("CL.THROTTLE", "a", 99, 1, funnelPeriod), call("DEL", "a"), call("CL.CHECK", "named", "x"), call("FLUSHALL"),
			call("CL.LIMIT", "SET", "other", "FUNNEL", 9, 1, 60), call("CL.LIMIT", "OVERRIDE", "named", "x", "DENY"),
			call("CL.BTHROTTLE", "a", 99, 1, 60, 1, 5), call("CL.MTHROTTLE", 1, "a", 99, 1, funnelPeriod, 1), call("CL.CONCURRENCY", "RELEASE", "leases", "x"),
			call("CL.REFUND", "a", 99, 1, 60), call("EXPIRE", "a", 5), call("INCR", "counter"), call("INCR", "new"),
			call("INCREX", "counter", "EX", 5), call("INCREX", "new", "UBOUND", 0, "SATURATE"), call("INCREX", "counter", "BYFLOAT", 1), call("SET", "text", "y"),
			call("GETDEL", "text"), call("GETEX", "text", "PERSIST"), call("MSET", "counter", 1, "text", 2), call("RENAME", "text", "other"),
			call("SET", "text", "y", "IFNE", "x"), call("DELEX", "text", "IFNE", "x"), call("DELIFEQ", "text", "x"), call("GETSET", "text", "y"),
			call("MSETEX", 1, "text", "y", "EX", 60), call("MSETNX", "new", 1),
		} {
			replica.expect(t, readOnly, c...)
		}
		if got := replica.say(t, "EVAL", "return redis.call('cl.throttle', KEYS[1], 9, 1, 60)", 1, "b"); !strings.Contains(got, readOnly) {
			t.Errorf("link %s: a script got %q", link, got)
		}
		between.cut()
	}
	sameStates(t, replica.dumps(t), leader.dumps(t))
}

// TestTransactionsOnReplicas: as with Redis, a change in MULTI is refused at once, and EXEC then aborts; so
// it is while nothing can be written for lack of replicas.
func TestTransactionsOnReplicas(t *testing.T) {
	t.Parallel()
	theirLeader := startRedis(t)
	theirs := startRedis(t, "--replicaof", "127.0.0.1 "+theirLeader.Port())
	lonely := startRedis(t, "--min-replicas-to-write", "1")
	ourLeader := start(t)
	for _, tt := range []struct {
		of                *server
		write, code, then string
	}{
		{theirs, "SET a 1", "-READONLY ", "-EXECABORT Transaction discarded because of previous errors."},
		{startReplica(t, ourLeader.Addr), "DEL a", "-READONLY ", "-EXECABORT Transaction discarded because of previous errors."},
		{lonely, "SET a 1", "-NOREPLICAS Not enough good replicas to write.", "-EXECABORT Transaction discarded because of previous errors."},
		{start(t, "--min-replicas-to-write", "1"), "DEL a", "-NOREPLICAS Not enough good replicas to write.", "-EXECABORT Transaction discarded because of previous errors."},
	} {
		said := strings.Split(harness.SayTo(t, tt.of.Dial(t), "MULTI\r\n"+tt.write+"\r\nEXEC\r\nPING\r\n", "+PONG\r\n"), "\r\n")
		if len(said) != 5 || !strings.HasPrefix(said[1], tt.code) || said[2] != tt.then {
			t.Errorf("%s: got %q", tt.write, said)
		}
	}
}

// TestDoorsOfReplicas: over HTTP what would change a key is 503, and a look is answered.
func TestDoorsOfReplicas(t *testing.T) {
	t.Parallel()
	leader := start(t)
	leader.do(t, "CL.LIMIT", "SET", "named", "FUNNEL", 9, 1, 600_000)
	lonely := start(t, "--http-addr", "127.0.0.1:0", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "300ms")
	replica := startReplica(t, leader.Addr, "--http-addr", "127.0.0.1:0")
	leader.inStep(t)
	const uses = `{"checks":[{"limit":"named","key":"x","units":1}]`
	for _, tt := range []struct {
		of         *server
		path, says string
		want       int
		body       string // of a POST
	}{
		{replica, "/v1/check/named?key=x", "READONLY", http.StatusServiceUnavailable, ""},
		{replica, "/v1/check/named?key=x&quantity=0", "", http.StatusOK, ""},
		{lonely, "/v1/check", "NOREPLICAS", http.StatusServiceUnavailable, `{"key":"k","algorithm":"funnel","max_burst":1,"count":1,"period":1}`},
		{replica, "/v1/reserve", "READONLY", http.StatusServiceUnavailable, uses + `,"ttl_ms":1000}`},
		{replica, "/v1/reserve", "READONLY", http.StatusServiceUnavailable, strings.Replace(uses, "named", "nosuch", 1) + `,"ttl_ms":1000}`},
		{replica, "/v1/commit", "READONLY", http.StatusServiceUnavailable, uses + `,"id":"x"}`},
		{replica, "/v1/extend", "READONLY", http.StatusServiceUnavailable, `{"checks":[{"limit":"named","key":"x"}],"id":"x","ttl_ms":1000}`},
	} {
		var answer *http.Response
		var err error
		if tt.body == "" {
			answer, err = http.Get("http://" + tt.of.HTTP + tt.path)
		} else {
			answer, err = http.Post("http://"+tt.of.HTTP+tt.path, "application/json", strings.NewReader(tt.body))
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != tt.want || !strings.Contains(string(body), tt.says) {
			t.Errorf("%s: %d %s, %v", tt.path, answer.StatusCode, body, err)
		}
	}
}

// TestMinReplicas: changes are refused while too few replicas acknowledge, and accepted again.
func TestMinReplicas(t *testing.T) {
	t.Parallel()
	leader := start(t, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "300ms")
	charge := call("CL.THROTTLE", "a", 99, 1, funnelPeriod)
	const refusal = "NOREPLICAS Not enough good replicas to write."
	leader.expect(t, refusal, charge...)
	leader.expect(t, "[0 100 100 ", "CL.THROTTLE", "a", 99, 1, funnelPeriod, 0)
	between := newLink(t, leader.Addr)
	replica := startReplica(t, between.addr)
	leader.Eventually(t, "accept changes", func() bool { return leader.say(t, charge...)[0] == '[' })
	between.cut()
	leader.Eventually(t, "refuse changes", func() bool { return leader.say(t, charge...) == refusal })
	leader.await(t, "min_slaves_good_slaves", "0")
	between.mend()
	leader.Eventually(t, "accept changes", func() bool { return leader.say(t, charge...)[0] == '[' })
	leader.inStep(t)
	leader.await(t, "min_slaves_good_slaves", "1")
	leader.expect(t, "OK", "CONFIG", "SET", "min-replicas-to-write", 2)
	leader.expect(t, refusal, charge...)
	leader.expect(t, "OK", "CONFIG", "SET", "min-replicas-to-write", 0)
	leader.expect(t, "[0 ", charge...)
	leader.inStep(t)
	sameStates(t, replica.dumps(t), leader.dumps(t))
}

// TestLinkErrors: INFO says why a link is down, and a replica tries again.
func TestLinkErrors(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	closed := start(t, "--requirepass", "secret")
	free := processtest.FreeAddr(t)
	replica := start(t, "--repl-password-file", harness.WriteFile(t, "wrong"))
	replica.charge(t, "a", 10)
	for _, tt := range []struct{ to, says string }{
		{replica.Addr, "NOTLEADER "}, {redis.Addr, "unknown command 'CL.SYNC'"}, {closed.Addr, "WRONGPASS"}, {free, "connection refused"},
	} {
		replica.follow(t, tt.to)
		replica.Eventually(t, "say "+tt.says, func() bool { return strings.Contains(replica.field(t, "cell_link_error"), tt.says) })
		f := replica.fields(t, "replication")
		if f["role"] != "slave" || f["master_link_status"] != "down" || f["slave_priority"] != "100" {
			t.Errorf("%s: it says %v", tt.to, f)
		}
		replica.expect(t, "10", "DBSIZE")
	}
	leader := start(t, "--addr", free)
	leader.do(t, "FLUSHALL") // else it has never had a state
	replica.awaitLink(t, "up")
	replica.expect(t, "0", "DBSIZE")
	if got, is := replica.fields(t, "replication")["cell_link_error"]; is {
		t.Errorf("it still says %q", got)
	}
	replica.expect(t, "OK Already connected to specified master", "REPLICAOF", "127.0.0.1", leader.Port())
	for _, c := range [][]any{call("REPLICAOF", "127.0.0.1", "x"), call("REPLICAOF", "127.0.0.1", 0), call("REPLICAOF", "127.0.0.1", 65536)} {
		replica.expect(t, "ERR Invalid master port", c...)
	}
	replica.expect(t, "ERR the host must be", "REPLICAOF", "a b", 1)
}
