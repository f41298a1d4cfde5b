//go:build unix

package durability

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
)

// blockRule is a rule by which nothing leaks while a test runs. Its block ends long before.
const blockRule = "{algorithm: fixed_window, max_count: 2, period: 1w, block: 1d"

// blocks is a server under the limit login.
type blocks struct {
	*testing.T
	p    *harness.Process
	rdb  *redis.Client
	file string
}

func newBlocks(t *testing.T, file, dir string, args ...string) *blocks {
	args = append([]string{"--limits-file", file, "--fsync-interval", "0", "--http-addr", "127.0.0.1:0"}, args...)
	p := harness.StartKeeping(t, dir, args...)
	return &blocks{t, p, harness.Database(t, p, 0), file}
}

func (b *blocks) check(key string, quantity int) []int64 {
	b.Helper()
	r, err := b.rdb.Do(b.Context(), "CL.CHECK", "login", key, quantity).Int64Slice()
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// exceed begins a block.
func (b *blocks) exceed(key string) {
	b.Helper()
	for i := range 3 {
		if r := b.check(key, 1); r[0] != int64(i/2) {
			b.Fatalf("call %d: %v", i, r)
		}
	}
	b.wantBlocked(key, true)
}

// wantBlocked compares what a call and a look say. A refund frees units first, so only a block denies.
func (b *blocks) wantBlocked(key string, want bool) {
	b.Helper()
	const day = 86_400
	b.check(key, -2)
	for _, quantity := range []int{0, 1} {
		r := b.check(key, quantity)
		isBlocked := r[0] == 1 && r[2] == 0 && r[3] > day/2 && r[3] <= day && r[4] >= r[3]
		if isBlocked != want || !want && r[0] != 0 {
			b.Fatalf("%d units for %s: %v, want it blocked: %t", quantity, key, r, want)
		}
	}
	rules, err := b.rdb.Do(b.Context(), "CL.LIMIT", "EXPLAIN", "login", key).Slice()
	if err != nil {
		b.Fatal(err)
	}
	if first, _ := rules[1].([]any); (len(first) == 3) != want {
		b.Fatalf("EXPLAIN has %v, want it blocked: %t", rules, want)
	}
}

func (b *blocks) do(args ...any) any {
	b.Helper()
	r, err := b.rdb.Do(b.Context(), args...).Result()
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b *blocks) reload(rule string) {
	b.Helper()
	if err := os.WriteFile(b.file, []byte("limits: {login: {rules: ["+rule+"]}}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.do("CL.LIMIT", "RELOAD")
}

// TestBlock: who exceeds a rule that blocks is denied whatever is free again, through a reload that leaves
// the rule, a kill, DUMP and RESTORE. CL.RESET, an override and another rule end it.
func TestBlock(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, []byte("limits: {login: {rules: ["+blockRule+"}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBlocks(t, file, dir)
	for _, key := range []string{"kept", "reset", "given", "copied"} {
		b.exceed(key)
	}
	b.wantBlocked("other", false)
	b.reload(blockRule + "} ")
	b.wantBlocked("kept", true)

	b.do("CL.RESET", "login:reset")
	b.wantBlocked("reset", false)
	b.do("CL.LIMIT", "OVERRIDE", "login", "given", "FIXEDWINDOW", 3, 604_800)
	b.wantBlocked("given", false)
	b.do("CL.LIMIT", "OVERRIDE", "login", "given", "DEL")
	b.wantBlocked("given", false)

	dump := b.do("DUMP", "login:copied")
	b.do("CL.RESET", "login:copied")
	b.wantBlocked("copied", false)
	b.do("RESTORE", "login:copied", 0, dump, "REPLACE")
	b.wantBlocked("copied", true)

	headers := b.get("/v1/check/login?key=kept")
	after, _ := strconv.Atoi(headers.Get("Retry-After"))
	if after < 43_200 || !strings.Contains(headers.Get("RateLimit"), `"login";r=0;t=`) {
		t.Errorf("over HTTP %v", headers)
	}

	b.p.Stop(t, syscall.SIGKILL)
	b = newBlocks(t, file, dir)
	for key, want := range map[string]bool{"kept": true, "copied": true, "reset": false, "given": false} {
		b.wantBlocked(key, want)
	}

	replica := newBlocks(t, file, t.TempDir(), "--replica-of", b.p.Addr)
	patience.Until(func() bool {
		r, err := replica.rdb.Do(t.Context(), "CL.CHECK", "login", "kept", 0).Int64Slice()
		return err == nil && r[0] == 1 && r[3] > 43_200
	})

	b.reload(blockRule + ", block_on: each}")
	b.wantBlocked("kept", false)
}

// get asks over HTTP, and expects a denial.
func (b *blocks) get(path string) http.Header {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+b.p.HTTP+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusTooManyRequests {
		b.Fatalf("got %s, %v", answer.Status, err)
	}
	return answer.Header
}
