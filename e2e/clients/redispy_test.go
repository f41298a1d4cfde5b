package clients

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/processtest"
	"cellserver/internal/wire/catalog"
)

// python is Debian's, which finds the modules of Debian's packages; another may come first in PATH.
const python = "/usr/bin/python3"

func TestRedisPy(t *testing.T) {
	t.Parallel()
	if err := processtest.Command(t, python, "-c", "import redis").Run(); err != nil {
		processtest.SkipWithout(t, python+" with redis")
	}
	socket := filepath.Join(t.TempDir(), "cell.sock")
	open := harness.StartServer(t, "--unixsocket", socket)
	locked := harness.StartServer(t, "--requirepass", "sesame")
	for name, url := range map[string]string{
		"TCP":         "redis://" + open.Addr,
		"database":    "redis://" + open.Addr + "/7",
		"unix socket": "unix://" + socket + "?db=1",
		"password":    "redis://:sesame@" + locked.Addr + "/0",
	} {
		t.Run(name, func(t *testing.T) { testRedisPy(t, url) })
	}
}

func testRedisPy(t *testing.T, url string) {
	cmd := processtest.Command(t, python, "-W", "error", "testdata/redis_py.py", url)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if replies, ok := got["pipeline"].([]any); !ok || len(replies) != 1000 || replies[0] != 999.0 || replies[999] != 0.0 {
		t.Errorf("pipeline: got %v", got["pipeline"])
	}
	delete(got, "pipeline")
	want := map[string]string{
		"ping":       `true`,
		"single":     `[[0,16,15,-1],[0,16,14,-1]]`,
		"ttl":        `true`,
		"exists":     `1`,
		"name":       `"redis-py"`,
		"error":      `"ResponseError: Cell error: Store error: Couldn't parse as integer: b"`,
		"info":       `"` + catalog.RedisVersion + `"`,
		"config":     `{"databases":"16"}`,
		"docs":       `"cl.throttle"`,
		"modules":    `["redis-cell"]`,
		"renamed":    `["renamed",3,0]`,
		"database 3": `[1,true,0]`,
		"bytes":      `[0,1,0,-1,60]`,
	}
	for key, value := range want {
		if text, _ := json.Marshal(got[key]); string(text) != value {
			t.Errorf("%s: got %s, want %s", key, text, value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d answers, want %d", len(got), len(want))
	}
}
