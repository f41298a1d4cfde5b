package remote

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// storeAway is what /readyz says without a store.
const storeAway = "the store does not answer; the log says why"

// awaitStore waits until the server's figures say that its store answers, or that it does not.
func awaitStore(t *testing.T, p *harness.Process, up float64) {
	t.Helper()
	p.Eventually(t, "notice its store", func() bool { return p.Metric(t, "cellserver_store_up") == up })
}

// TestRemoteStore: servers that share a Redis share its limits, in redis-cell's format, even if one starts
// later.
func TestRemoteStore(t *testing.T) {
	redis := redistest.Server(t)
	var clients []net.Conn
	for range 2 {
		p := harness.StartServer(t, "--store", "redis://"+redis.Addr+"/0", "--store-timeout", "1m")
		awaitStore(t, p, 1)
		clients = append(clients, p.Dial(t))
	}
	for i, want := range []string{"*5 :0 :3 :2 :-1 :2000", "*5 :0 :3 :1 :-1 :4000", "*5 :0 :3 :0 :-1 :6000", "*5 :1 :3 :0 :2000 :6000"} {
		if got := harness.Reply(t, clients[i%2], "CL.THROTTLE k 2 3 6000"); got != want && !within(got, want) {
			t.Errorf("call %d: got %s, want %s", i, got, want)
		}
	}
	ttl, err := redis.Client().PTTL(t.Context(), "k").Result()
	if err != nil || ttl <= 5900*time.Second || ttl > 6001*time.Second {
		t.Errorf("on the Redis: %s, %v", ttl, err)
	}
	late := harness.StartServer(t, "--store", "redis://"+redis.Addr, "--store-timeout", "1m")
	nc := late.Dial(t)
	for command, want := range map[string]string{
		"TYPE k": "+string", "EXISTS k": ":1", "SELECT 1": "-ERR DB index is out of range", "CONFIG GET databases": "*2 $9 databases $1 1",
		"CONFIG GET store": "*2 $5 store $" + strconv.Itoa(len("redis://"+redis.Addr)) + " redis://" + redis.Addr, "DBSIZE": ":1",
		"CONFIG SET max-new-keys-per-second 5": "-ERR CONFIG SET failed (possibly related to argument 'max-new-keys-per-second') - argument must be 0 with this --store: only the store knows which keys are new",
	} {
		if got := harness.Reply(t, nc, command); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
	if got := harness.Reply(t, nc, "CL.THROTTLE k 2 3 6000"); !strings.HasPrefix(got, "*5 :1 :3 :0") {
		t.Errorf("the third server: got %s", got)
	}
	if got := harness.Reply(t, nc, "DEL k"); got != ":1" {
		t.Errorf("DEL: got %s", got)
	}
	if got := harness.Reply(t, nc, "CL.THROTTLE k 2 3 6000"); !strings.HasPrefix(got, "*5 :0 :3 :2") {
		t.Errorf("after DEL: got %s", got)
	}
}

// within compares the five numbers, of which the times may be less by a minute: the Redis's clock goes on.
func within(got, want string) bool {
	g, w := strings.Fields(got), strings.Fields(want)
	if len(g) != 6 || len(w) != 6 || strings.Join(g[:4], " ") != strings.Join(w[:4], " ") {
		return false
	}
	for i := 4; i < 6; i++ {
		seconds, _ := strconv.Atoi(g[i][1:])
		if most, _ := strconv.Atoi(w[i][1:]); seconds > most || seconds < most-60 {
			return false
		}
	}
	return true
}

// TestStoreGoesAway: a Redis that is killed has calls decided by the policy, is told of in readiness,
// metrics, INFO and the log, and serves again when it is back, without a restart of ours.
func TestStoreGoesAway(t *testing.T) {
	for _, tt := range []struct {
		policy, reply, rest, ready string
		code                       int
	}{
		{"error", "-STOREDOWN ", "nothing was charged", "the store does not answer; the log says why", 503},
		{"allow", "*5 :0 :3 :2 :-1 :", "", "degraded: the store does not answer, and --on-store-error=allow decides", 200},
		{"deny", "*5 :1 :3 :0 :1 :", "", "degraded: the store does not answer, and --on-store-error=deny decides", 200},
		{"local", "*5 :0 :2 :1 :-1 :", "", "degraded: the store does not answer, and --on-store-error=local decides", 200},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Server(t)
			args := []string{
				"--store", "redis://" + redis.Addr, "--store-timeout", "1m", "--on-store-error", tt.policy,
			}
			if tt.policy == "local" {
				args = append(args, "--local-share", "0.667")
			}
			p := harness.StartServer(t, args...)
			awaitStore(t, p, 1)
			nc := p.Dial(t)
			p.Eventually(t, "decide", func() bool {
				return strings.HasPrefix(harness.Reply(t, nc, "CL.THROTTLE k 2 3 6000"), "*5 ")
			})
			if code, text := p.Readiness(t); code != 200 || text != "ok" {
				t.Errorf("ready: got %d, %s", code, text)
			}

			redis.Kill()
			harness.Reply(t, nc, "CL.THROTTLE other 2 3 60")
			awaitStore(t, p, 0)
			if got := harness.Reply(t, nc, "CL.THROTTLE another 2 3 60"); !strings.HasPrefix(got, tt.reply) || !strings.Contains(got, tt.rest) {
				t.Errorf("without the store: got %s, want %s...%s", got, tt.reply, tt.rest)
			}
			if code, text := p.Readiness(t); code != tt.code || !strings.HasSuffix(text, tt.ready) {
				t.Errorf("readiness: got %d, %s", code, text)
			}
			code, out, _ := p.Health(t, nil, "--metrics-addr", p.Metrics)
			if (code == 0) != (tt.code == 200) || code == 0 && out != "ok\n"+tt.ready+"\n" {
				t.Errorf("health: got %d, %q", code, out)
			}
			if n := p.Metric(t, "cellserver_store_policy_decisions_total"); n < 1 {
				t.Errorf("%g decisions by the policy", n)
			}
			if got := harness.Reply(t, nc, "INFO store"); !strings.Contains(got, "store_status:away") || !strings.Contains(got, "store_fault:"+redis.Addr) ||
				!strings.Contains(got, "store_server0:addr="+redis.Addr+",circuit=") || !strings.Contains(got, "store_server0_failures_network:") {
				t.Errorf("INFO: got %s", got)
			}
			if !strings.Contains(p.Log.String(), `"msg":"the store does not answer"`) {
				t.Error("the log lacks that the store does not answer")
			}

			if err := redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			awaitStore(t, p, 1)
			p.Eventually(t, "decide again", func() bool {
				harness.Reply(t, nc, "CL.THROTTLE fresh 2 3 6000")
				n, err := redis.Client().Exists(t.Context(), "fresh").Result()
				return err == nil && n == 1
			})
			if code, text := p.Readiness(t); code != 200 || text != "ok" {
				t.Errorf("ready again: got %d, %s", code, text)
			}
			if !strings.Contains(p.Log.String(), `"msg":"the store answers again"`) {
				t.Error("the log lacks that the store answers again")
			}
		})
	}
}

// TestStorePassword: one from a file is used, a wrong one is an error that says so, and none is ever shown.
func TestStorePassword(t *testing.T) {
	const secret = "s3:cret@/%"
	redis := redistest.Server(t, "--requirepass", secret)
	file := harness.WriteFile(t, secret+"\n")
	right := harness.StartServer(t, "--store", "redis://"+redis.Addr, "--store-password-file", file,
		"--store-timeout", "1m")
	awaitStore(t, right, 1)
	nc := right.Dial(t)
	if got := harness.Reply(t, nc, "CL.THROTTLE k 2 3 60"); !strings.HasPrefix(got, "*5 :0 ") {
		t.Errorf("got %s", got)
	}
	wrong := harness.StartServer(t, "--store", "redis://:wr0ng@"+redis.Addr, "--store-timeout", "1m")
	awaitStore(t, wrong, 0)
	nc2 := wrong.Dial(t)
	if got := harness.Reply(t, nc2, "CL.THROTTLE k 2 3 60"); !strings.HasPrefix(got, "-STOREDOWN "+redis.Addr+": WRONGPASS") {
		t.Errorf("a wrong password: got %s", got)
	}
	wrong.Eventually(t, "count and log why", func() bool {
		return strings.Contains(wrong.Log.String(), `"msg":"the store did not decide some calls","reason":"auth"`)
	})
	if code, text := wrong.Readiness(t); code != 503 || text != storeAway {
		t.Errorf("readiness with a wrong password: got %d, %s", code, text)
	}
	for _, p := range []*harness.Process{right, wrong} {
		shown := p.Log.String() + harness.Reply(t, p.Dial(t), "CONFIG GET *") + harness.Reply(t, p.Dial(t), "INFO everything") + page(t, p, "/") + page(t, p, "/metrics")
		for _, hidden := range []string{secret, "s3", "wr0ng"} {
			if strings.Contains(shown, hidden) {
				t.Errorf("%s is shown", hidden)
			}
		}
	}
}

func page(t *testing.T, p *harness.Process, path string) string {
	t.Helper()
	_, body := p.Fetch(t, path, "")
	return body
}

// TestStoreRights: the rights that TUNING.md lists suffice, on a Redis and on a cluster, and are no more
// than it says.
func TestStoreRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/TUNING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(text), "    ACL SETUSER limits ")
	line, _, _ = strings.Cut(strings.ReplaceAll(line, "~*", "~limits:*"), "\n")
	if !ok {
		t.Fatal("TUNING.md does not list them")
	}
	rules := []any{"ACL", "SETUSER", "limits"}
	for rule := range strings.FieldsSeq(line) {
		rules = append(rules, rule)
	}
	t.Run("redis", func(t *testing.T) {
		redis := redistest.Server(t)
		testRights(t, rules, "redis://limits:PASSWORD@"+redis.Addr+"/3", "SCAN 0", redis)
		if keys, err := redis.Client().Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
			t.Errorf("database 0 has %q, %v", keys, err)
		}
	})
	t.Run("cluster", func(t *testing.T) {
		if testing.Short() {
			t.Skip("starts a cluster")
		}
		c := redistest.Cluster(t)
		url := strings.Replace(c.URL(), "://", "://limits:PASSWORD@", 1)
		testRights(t, rules, url, "PING", c.All()...)
	})
}

func testRights(t *testing.T, rules []any, url, more string, nodes ...*redistest.Process) {
	t.Helper()
	for _, node := range nodes {
		if err := node.Client().Do(t.Context(), rules...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	p := harness.StartServer(t, "--store", url, "--store-timeout", "1m", "--key-prefix", "limits:")
	awaitStore(t, p, 1)
	nc := p.Dial(t)
	lines := []string{
		"CL.THROTTLE funnel 2 3 60", "CL.THROTTLE funnel 2 3 60 3", "CL.THROTTLE funnel 2 3 60 -1", "CL.PEEK funnel 2 3 60", "CL.FIXEDWINDOW window 5 60",
		"CL.BUCKET ADD bucket 5 1", "CL.BUCKET TAKE bucket 5", "CL.CONCURRENCY ACQUIRE slots 5 1000 me", "CL.SLIDINGWINDOW sliding 5 60",
		"CL.RESERVE reserving 2 3 60 1 60000", "CL.MTHROTTLE 2 a{t} 4 1 10 1 b{t} 4 1 10 1", "TTL funnel", "TYPE bucket", "EXISTS window sliding", "DBSIZE",
		"MULTI\r\nCL.THROTTLE a{t} 2 3 60\r\nCL.THROTTLE b{t} 2 3 60\r\nEXEC", "DEL funnel bucket", "INFO store", more,
	}
	for _, line := range lines {
		if got := harness.Reply(t, nc, line); strings.HasPrefix(got, "-") || strings.Contains(got, " -STOREDOWN") {
			t.Errorf("%s: got %s", line, got)
		}
	}
	for _, node := range nodes {
		denied, err := node.Client().Do(t.Context(), "ACL", "LOG").Slice()
		if err != nil || len(denied) > 0 {
			t.Errorf("%s has denied: %v, %v", node.Addr, denied, err)
		}
		if dry, err := node.Client().Do(t.Context(), "ACL", "DRYRUN", "limits", "FLUSHALL").Text(); err != nil || dry == "OK" {
			t.Errorf("%s: FLUSHALL is allowed, %v", node.Addr, err)
		}
	}
}
