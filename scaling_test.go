package cellserver_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redistest"
)

// TestScalingTranscripts runs what docs/SCALING.md starts: each command on real servers of its kind.
func TestScalingTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster and sentinels")
	}
	need(t, "redis-cli", "bash")
	patiently(t)
	binary := build(t)
	stores := map[string]func() string{
		"redis":          func() string { return "redis://127.0.0.1:" + redisOnTCP(t) },
		"redis-cluster":  func() string { return redistest.Cluster(t).URL() },
		"redis-sentinel": func() string { return redistest.Sentinels(t).URL() },
	}
	url := regexp.MustCompile(`--store (redis[a-z-]*)://\S+`)
	for _, f := range fences(t, "docs/SCALING.md") {
		if f.language != "console" {
			continue
		}
		first, rest, _ := strings.Cut(f.text, "\n")
		command, ok := strings.CutSuffix(strings.TrimPrefix(first, "$ "), " &")
		m := url.FindStringSubmatch(command)
		if !ok || m == nil || stores[m[1]] == nil {
			t.Fatalf("%s starts no server over a store that is not shown yet", first)
		}
		command = url.ReplaceAllString(command, "--store "+stores[m[1]]())
		delete(stores, m[1])
		s := start(t, "bash", "-c", "cd "+filepath.Dir(binary)+" && exec "+command)
		awaitReady(t, s)
		if got := transcript(t, t.TempDir(), rest, s.ports); got != rest {
			t.Errorf("over %s got\n%s\nwant\n%s", m[1], got, rest)
		}
	}
	if len(stores) > 0 {
		t.Errorf("not shown: %v", stores)
	}
}

// TestScalingUser: the user that docs/SCALING.md makes on a Redis has the rights that cellserver needs there, and no others.
func TestScalingUser(t *testing.T) {
	need(t, "redis-cli")
	patiently(t)
	text, err := os.ReadFile("docs/SCALING.md")
	if err != nil {
		t.Fatal(err)
	}
	rights := regexp.MustCompile(`(?m)^    ACL SETUSER (limits) on >(PASSWORD) (.*)$`).FindStringSubmatch(string(text))
	if rights == nil {
		t.Fatal("no user")
	}
	port := redisOnTCP(t)
	run(t, "", "redis-cli", append([]string{"-p", port, "ACL", "SETUSER", rights[1], "on", ">" + rights[2]}, strings.Fields(rights[3])...)...)
	s := start(t, build(t), "--store", "redis://"+rights[1]+":"+rights[2]+"@127.0.0.1:"+port)
	awaitReady(t, s)
	for _, command := range []string{
		"CL.THROTTLE a 3 1 60", "CL.THROTTLE a 3 1 60 -1", "CL.FIXEDWINDOW b 3 60", "CL.SLIDINGWINDOW c 3 60", "CL.BUCKET ADD d 5 3", "CL.BUCKET TAKE d",
		"CL.CONCURRENCY ACQUIRE e 3 60 1", "CL.RESERVE f 3 1 60 1 60", "CL.MTHROTTLE 2 a 4 1 10 1 g 4 1 10 1", "CL.PEEK a 3 1 60",
		"EXISTS a b", "TTL a", "TYPE c", "DBSIZE", "SCAN 0", "DEL a b c",
	} {
		reply := run(t, "", "redis-cli", append([]string{"-p", s.redisPort}, strings.Fields(command)...)...)
		if strings.Contains(reply, "STOREDOWN") || strings.Contains(reply, "ERR") {
			t.Errorf("%s is answered %s", command, reply)
		}
	}
	if refused := run(t, "", "redis-cli", "-p", port, "ACL", "LOG"); strings.Contains(refused, rights[1]) {
		t.Errorf("the Redis has refused something: %s", refused)
	}
	if reply := run(t, "", "redis-cli", "-p", port, "--user", rights[1], "--pass", rights[2], "--no-auth-warning", "FLUSHALL"); !strings.Contains(reply, "NOPERM") {
		t.Errorf("FLUSHALL is answered %s", reply)
	}
}

// patiently has the store's servers waited for, as on a machine as busy as the tests' the default may be too short.
func patiently(t *testing.T) {
	t.Helper()
	t.Setenv("CELLSERVER_STORE_TIMEOUT", "30s")
}

func awaitReady(t *testing.T, s server) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		response, err := http.Get("http://127.0.0.1:" + s.metricsPort + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %v", err)
		}
	}
}
