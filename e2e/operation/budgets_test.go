package operation

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// budgetFile has a budget with a plan and overrides.
const budgetFile = `limits:
  org:
    rules: [{algorithm: fixed_window, max_count: 1000, period: 30d}]
    overrides:
      - {keys: [acme], plan: big}
      - {keys: [[192.0.2.1, /v1]], rules: [{algorithm: fixed_window, max_count: 100, period: 30d}]}
      - {keys: [out], deny: true}
  trial: {shadow: true, rules: [{algorithm: fixed_window, max_count: 10, period: 30d}]}
plans:
  big: {rules: [{algorithm: fixed_window, max_count: 5000, period: 30d}]}
`

// TestBudgetsByHTTP: a program holds and settles by HTTP, with a token, plans and overrides, while the file is
// read again.
func TestBudgetsByHTTP(t *testing.T) {
	t.Parallel()
	file := harness.WriteFile(t, budgetFile)
	tokens := harness.WriteFile(t, keeperToken+" gateway\n"+poorToken+" poor\n")
	users := harness.WriteFile(t, "user default on >pw ~* &* +@all\nuser gateway on nopass ~org:* ~trial:* +cl.mreserve +cl.mcommit +cl.mextend +cl.check\nuser poor on nopass ~trial:* +cl.mreserve\n")
	p := harness.StartServer(t, "--aclfile", users, "--http-addr", "127.0.0.1:0", "--http-tokens-file", tokens, "--limits-file", file,
		"--http-trusted-proxies", "127.0.0.1")
	client := newHTTPClient(t, nil)
	h2 := &http.Protocols{}
	h2.SetUnencryptedHTTP2(true)
	two := &http.Client{Transport: &http.Transport{Protocols: h2}}
	t.Cleanup(two.CloseIdleConnections)
	say := func(path, body string, status int, contains string) {
		t.Helper()
		for _, by := range []*http.Client{client, two} {
			if got, text := call(t, by, "POST", "http://"+p.HTTP+"/v1/"+path, body, keeperToken); got != status || !strings.Contains(text, contains) {
				t.Errorf("%s %s: got %d %s, want %d %s", path, body, got, text, status, contains)
			}
		}
	}
	const pairs = `"checks":[{"limit":"org","key":"acme"UNITS},{"limit":"org","key":"9:192.0.2.1,3:/v1"UNITS},{"limit":"trial","key":"acme"UNITS}]`
	of := func(units string) string {
		if units != "" {
			units = `,"units":` + units
		}
		return strings.ReplaceAll(pairs, "UNITS", units)
	}
	hold := `{` + of("60") + `,"ttl_ms":3600000,"id":"mine"}` // the same call again is the same hold
	say("reserve", hold, 200, `"id":"mine","checks":[{"name":"org","key":"acme","allowed":true,"limit":5000,"remaining":4940,`)
	say("reserve", hold, 200, `{"name":"org","key":"9:192.0.2.1,3:/v1","allowed":true,"limit":100,"remaining":40,`)
	say("reserve", hold, 200, `"near":true`) // the shadow
	say("reserve", `{`+of("60")+`,"ttl_ms":3600000}`, 429, `the limit \"org\" has 40 of 100 units left for \"9:192.0.2.1,3:/v1\"; try again in `)
	say("reserve", `{"checks":[{"limit":"org","key":"out","units":1}],"ttl_ms":1}`, 429, `the limit \"org\" allows nothing for \"out\"`)
	if got, text := call(t, client, "POST", "http://"+p.HTTP+"/v1/reserve", hold, poorToken); got != 403 {
		t.Errorf("without the right: %d %s", got, text)
	}
	r, err := http.NewRequest(http.MethodGet, "http://"+p.HTTP+"/v1/check/org?quantity=0&by=ip,path", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Uri": "/v1", "X-Cellserver-Token": keeperToken} {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if got := answer.Header.Get("RateLimit"); !strings.HasPrefix(got, `"org";r=40;`) {
		t.Errorf("by=ip,path: %q", got)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(budgetFile, "5000", "6000")), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Signal(t, syscall.SIGHUP)
	p.Eventually(t, "read the file", func() bool {
		_, text := call(t, client, "GET", "http://"+p.HTTP+"/v1/check/org?key=acme&quantity=0", "", keeperToken)
		return strings.Contains(text, `"limit":6000,"remaining":5940,`)
	})
	say("extend", `{`+of("")+`,"ttl_ms":7200000,"id":"mine"}`, 200, `{"extended":true}`)
	if got, text := call(t, two, "POST", "http://"+p.HTTP+"/v1/commit", `{`+of("10")+`,"id":"mine"}`, keeperToken); got != 200 || !strings.Contains(text, `{"committed":true,"late":false}`) {
		t.Errorf("got %d %s", got, text)
	}
	say("commit", `{`+of("10")+`,"id":"mine"}`, 200, `{"committed":false,"late":false}`)
	_, text := call(t, client, "GET", "http://"+p.HTTP+"/v1/check/org?key=acme&quantity=0", "", keeperToken)
	if !strings.Contains(text, `"remaining":5990,`) {
		t.Errorf("at the end: %s", text)
	}
}
