package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// inJSON runs a command with and without --json: the codes and the errors must be the same. It returns the
// document on one line.
func inJSON(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	code, _, errOut := harness.Call(t, nil, args...)
	again, out, alsoErr := harness.Call(t, nil, append(args, "--json")...)
	if code != wantCode || again != code || alsoErr != errOut {
		t.Errorf("%q: %d, %q, with --json %d, %q", args, code, errOut, again, alsoErr)
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(out), &document); err != nil {
		t.Errorf("%q: %v: %s", args, err, out)
	}
	for name := range document {
		if regexp.MustCompile("[^a-z0-9_]").MatchString(name) {
			t.Errorf("%q: the name %q", args, name)
		}
	}
	return strings.Join(strings.Fields(out), " ")
}

func TestJSON(t *testing.T) {
	t.Parallel()
	limits, wrong := harness.WriteFile(t, ofAll), harness.WriteFile(t, "limits:\n  a: {}\n")
	more := harness.WriteFile(t, replaced(t, ofAll, "max_burst: 99", "max_burst: 199", "[monitoring]", `["ключ"]`))
	envoy := harness.WriteFile(t, "domain: shop\ndescriptors:\n  - {key: ip, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 9}}\n")
	config := harness.WriteFile(t, "maxclients: 1\nrequirepass: s3cret\nmetrics-allowed-hosts: [a, b]\n")
	trace := harness.WriteFile(t, "at,key,note\n1700000000,alice,<b>\n1700000000.5,a\xff,\"x\r\r\ny\"\n1700000000.75,alice,\n")
	bad := harness.WriteFile(t, "at,key\n1,a\nx,a\n")
	limit := []string{"--max-burst=0", "--count=1", "--period=1"}
	p := harness.StartServer(t, "--limits-file", limits)
	for _, tt := range []struct {
		code int
		args []string
		want string
	}{
		{0, []string{"health", "--metrics-addr", p.Metrics}, `{ "ready": true, "degraded": [], "problem": "" }`},
		{1, []string{"health", "--metrics-addr", p.Addr}, `{ "ready": false, "degraded": [], "problem": "no answer from `},
		{0, []string{"config", "show", "--config", config}, `{ "name": "maxclients", "value": "1", "source": "` + config + `:1" }`},
		{0, []string{"config", "show", "--config", config}, `{ "name": "requirepass", "value": null, "source": "` + config + `:2" }`},
		{0, []string{"config", "show", "--config", config}, `{ "name": "metrics-allowed-hosts", "value": "a,b", "source"`},
		{0, []string{"limits", "check", limits}, `"limits": 5, "plans": 3, "override_keys": 7, "override_patterns": 2, "problems": [] }`},
		{1, []string{"limits", "check", wrong}, `"problems": [ { "file": "` + wrong + `", "line": 2, "text": "the limit a must have rules, `},
		{0, []string{"limits", "diff", limits, "--addr", p.Addr}, `{ "changes": [] }`},
		{1, []string{"limits", "diff", more, "--addr", p.Addr}, `{ "changes": [ { "limit": "api", "text": "rule funnel 60: FUNNEL 99 100 60 -> FUNNEL 199 100 60" }, ` +
			`{ "limit": "api", "key": "monitoring", "text": "override removed: UNLIMITED" }, { "limit": "api", "key": "ключ", "text": "override added: UNLIMITED" } ] }`},
		{1, []string{"limits", "import", envoy}, `"notes": [ { "file": "` + envoy + `", "line": 3, "text": "quota_mode is not translated: `},
		{0, append(limit, "replay", trace), `{"rows": [ {"columns": {"at": "1700000000", "key": "alice", "note": "\u003cb\u003e"}, "limited": false, "limit": 1, "remaining": 0, ` +
			`"retry_after_ms": -1, "reset_after_ms": 1000}, {"columns": {"at": "1700000000.5", "key_base64": "Yf8=", "note": "x\r\ny"}, "limited": false, `},
		{0, append(limit, "replay", trace), `"limited": true, "limit": 1, "remaining": 0, "retry_after_ms": 1000, "reset_after_ms": 1000} ], "skipped_rows": 0, "skipped_calls": 0, "complete": true}`},
		{0, append(limit, "replay", trace, "--milliseconds"), `"limited": false, "limit": 1, "remaining": 0, "retry_after_ms": -1, "reset_after_ms": 1}`},
		{1, append(limit, "replay", bad), `"reset_after_ms": 1000} ], "skipped_rows": 0, "skipped_calls": 0, "complete": false}`},
		{0, append(limit, "replay", bad, "--skip-bad"), `"skipped_rows": 1, "skipped_calls": 0, "complete": true}`},
		{0, append(limit, "replay", trace, "--summary"), `{ "rows": 3, "allowed": 2, "limited": 1, "limited_share": 0.3333333333333333, "first": "2023-11-14T22:13:20Z", ` +
			`"last": "2023-11-14T22:13:20.75Z", "time_span_ms": 750, "skipped_rows": 0, "skipped_calls": 0, "most_limited": [ { "key": "alice", "limited": 1, "at_most_too_high": 0 } ] }`},
	} {
		if got := inJSON(t, tt.code, tt.args...); !strings.Contains(got, tt.want) || strings.Contains(got, "s3cret") {
			t.Errorf("%q: got\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
}

func TestCheckInJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir)
	harness.Exchange(t, p.Dial(t), "SET v 1\r\nCL.THROTTLE k 0 1 3600\r\n", "+OK\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3600\r\n")
	p.Stop(t, syscall.SIGTERM)
	if err := os.WriteFile(filepath.Join(dir, "log-99"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := inJSON(t, 0, "check", dir)
	for _, want := range []string{
		`{ "directory": "` + dir + `", "state": "ok", "problem": "", "files": [ { "name": "`, `"state": "ok", "frames": `, `"torn_bytes": 0, "problem": "" }`,
		`"live_keys": 2, "live_keys_by_kind": [ { "kind": "funnel", "keys": 1 }, { "kind": "value", "keys": 1 } ] }`, `"last_seen": "20`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "MANIFEST"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := inJSON(t, 1, "check", dir); !strings.Contains(got, `"state": "damaged", "problem": "`) || strings.Contains(got, `"problem": "", "files"`) {
		t.Errorf("got %s", got)
	}
}
