package remote

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/redistest"
)

// TestBudgetsByHTTPOverAStore: what one server holds by HTTP another one settles by RESP, and the other way
// round; without the store nothing is held.
func TestBudgetsByHTTPOverAStore(t *testing.T) {
	t.Parallel()
	on := redistest.Server(t)
	limits := harness.WriteFile(t, "limits: {org: {rules: [{algorithm: fixed_window, max_count: 1000, period: 30d}]}}\n")
	args := []string{"--store-timeout", "5s", "--on-store-error", "allow", "--limits-file", limits, "--http-addr", "127.0.0.1:0"}
	p, client := startRemote(t, "redis://"+on.Addr, args...)
	_, other := startRemote(t, "redis://"+on.Addr, args...)
	post := func(path, body string, status int, contains string) {
		t.Helper()
		answer, err := http.Post("http://"+p.HTTP+"/v1/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || !strings.Contains(string(text), contains) {
			t.Errorf("%s %s: got %d %s %v, want %d %s", path, body, answer.StatusCode, text, err, status, contains)
		}
	}
	const uses = `"checks":[{"limit":"org","key":"a","units":300},{"limit":"org","key":"b","units":300}]`
	post("reserve", `{`+uses+`,"ttl_ms":60000,"id":"one"}`, 200, `"remaining":700,`)
	if got, err := other.Do(t.Context(), "CL.MCOMMIT", "one", 2, "org", "b", 100, "org", "a", 50).Int(); got != 1 || err != nil {
		t.Errorf("settled by the other server: %d, %v", got, err)
	}
	if err := other.Do(t.Context(), "CL.MRESERVE", 1, "org", "a", 950, "TTL", "1m", "ID", "two").Err(); err != nil {
		t.Fatal(err)
	}
	post("reserve", `{`+uses+`,"ttl_ms":60000,"id":"three"}`, 429, `the limit \"org\" has 0 of 1000 units left for \"a\"; try again in `)
	post("commit", `{"checks":[{"limit":"org","key":"a","units":1000}],"id":"two"}`, 200, `{"committed":true,"late":false}`)
	if n, err := client.Do(t.Context(), "CL.CHECK", "org", "b", 0).Slice(); err != nil || n[2] != int64(900) {
		t.Errorf("left of b: %v, %v", n, err)
	}
	on.Kill()
	post("reserve", `{`+uses+`,"ttl_ms":60000,"id":"four"}`, 503, "STOREDOWN")
	post("commit", `{`+uses+`,"id":"two"}`, 503, "STOREDOWN")
	post("extend", `{"checks":[{"limit":"org","key":"a"}],"id":"two","ttl_ms":1000}`, 503, "STOREDOWN")
}
