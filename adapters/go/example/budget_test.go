package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/adapters/go/internal/servertest"
)

// place is the example, on free ports.
type place struct {
	server       *servertest.Server
	model, proxy *program
	journal      string
}

func open(t *testing.T, modelArgs []string, oldNew ...string) *place {
	t.Helper()
	dir := t.TempDir()
	limits(t, filepath.Join(dir, "limits.yaml"), oldNew...)
	p := &place{journal: filepath.Join(dir, "holds.jsonl")}
	p.server = servertest.Start(t, binary, "--limits-file="+filepath.Join(dir, "limits.yaml"))
	p.model = start(t, "model", append([]string{"-delay=0"}, modelArgs...)...)
	p.proxy = p.start(t)
	return p
}

func (p *place) start(t *testing.T, args ...string) *program {
	t.Helper()
	return start(t, "proxy", append([]string{
		"-cellserver=" + p.server.Addr, "-model=http://" + p.model.addr, "-journal=" + p.journal, "-timeout=1m",
	}, args...)...)
}

// settled waits until cellserver says what the model's ledger does, of each user.
func (p *place) settled(t *testing.T) {
	t.Helper()
	until(t, "the settlements", func() bool {
		tokens := map[string]int64{}
		for _, c := range ledger(t, p.model.addr) {
			if c.Status == "in_progress" {
				return false
			}
			tokens[c.User] += c.tokens()
		}
		for user, n := range tokens {
			if used(t, p.server, "user-tokens", user) != n {
				return false
			}
		}
		return true
	})
}

func TestShares(t *testing.T) {
	p := open(t, nil, "max_count: 200000}", "max_count: 1000}")
	use := func(n string) { p.server.Do(t, "cl.check user-tokens acme/ann "+n+" debit") }
	question := ask("acme/ann", "small", "how much is left?", 20)
	for i, tt := range []struct {
		before      string
		status      int
		near, error string
	}{
		{"1", 200, "", ""},
		{"800", 200, `"user-tokens"`, ""},
		{"150", 429, `"user-tokens"`, `the limit \"user-tokens\" has`},
	} {
		use(tt.before)
		status, h, body := answer(t, p.proxy.addr, question)
		if status != tt.status || h.Get("X-Ratelimit-Near") != tt.near || !strings.Contains(body, tt.error) {
			t.Errorf("%d: %d, %v, %s", i, status, h, body)
		}
		if h.Get("X-Ratelimit-Limit-Tokens") != "1000" || h.Get("X-Ratelimit-Remaining-Tokens") == "" ||
			h.Get("X-Ratelimit-Reset-Tokens") == "" || (h.Get("Retry-After") == "") != (tt.status == 200) {
			t.Errorf("%d: %v", i, h)
		}
		var e struct{ Error struct{ Type, Code string } }
		if err := json.Unmarshal([]byte(body), &e); err != nil || tt.status == 429 && e.Error.Code != "rate_limit_exceeded" {
			t.Errorf("%d: %v, %s", i, err, body)
		}
	}
}

func TestOthers(t *testing.T) {
	p := open(t, nil)
	for _, tt := range []struct {
		call   call
		status int
	}{
		{ask("acme/nobody", "small", "?", 20), 401},
		{ask("acme/ann", "unknown", "?", 20), 400},
		{ask("acme/ann", "small", "?", 1<<62), 400},
		{ask("initech/milton", "large", "?", 100_000), 429}, // of 50,000: no waiting helps
	} {
		status, _, body := answer(t, p.proxy.addr, tt.call)
		if status != tt.status || !strings.Contains(body, `"error"`) {
			t.Errorf("%+v: %d, %s", tt.call, status, body)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := open(t, nil)
	c := ask("acme/ann", "large", strings.Repeat("long ", 40), 20)
	status, _, body := answer(t, p.proxy.addr, c)
	if status != 200 || !strings.Contains(body, `"usage"`) {
		t.Errorf("%d, %s", status, body)
	}
	c.Stream = true
	status, _, body = answer(t, p.proxy.addr, c)
	if status != 200 || strings.Contains(body, `"usage"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("%d, %s", status, body)
	}
	c.Options = map[string]any{"include_usage": true}
	if _, _, body = answer(t, p.proxy.addr, c); !strings.Contains(body, `"usage"`) {
		t.Error(body)
	}
	p.settled(t)
	var tokens, spend int64
	for _, c := range ledger(t, p.model.addr) {
		tokens, spend = tokens+c.tokens(), spend+c.millionths()
	}
	for limit, want := range map[string]int64{
		"org-tokens acme": tokens, "user-tokens acme/ann": tokens, "model-tokens acme/large": tokens, "org-spend acme": spend,
	} {
		name, key, _ := strings.Cut(limit, " ")
		if got := used(t, p.server, name, key); got != want || got == 0 {
			t.Errorf("%s: %d, want %d", limit, got, want)
		}
	}
}

func TestModelFails(t *testing.T) {
	p := open(t, []string{"-fail=1"})
	statuses, broken := map[int]int{}, 0
	for i := range 20 {
		c := ask("acme/ann", "small", strings.Repeat("?", i), 20)
		c.Stream = i%2 == 0
		status, _, body := answer(t, p.proxy.addr, c)
		statuses[status]++
		if !strings.Contains(body, "the model ") {
			t.Errorf("%d, %s", status, body)
		}
		if status == 200 && !strings.Contains(body, "[DONE]") {
			broken++
		}
	}
	if statuses[502] == 0 || broken == 0 || statuses[200] != broken {
		t.Errorf("%v, %d broken", statuses, broken)
	}
	p.settled(t)
	p.model.kill()
	if status, _, body := answer(t, p.proxy.addr, ask("acme/bob", "small", "?", 20)); status != 502 {
		t.Errorf("%d, %s", status, body)
	}
	if got := used(t, p.server, "user-tokens", "acme/bob"); got != 0 {
		t.Errorf("%d charged", got)
	}
}

// TestHangUp has clients that go in the middle of an answer, which the model goes on to write.
func TestHangUp(t *testing.T) {
	p := open(t, []string{"-delay=1ms"})
	for _, stream := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		c := ask("acme/ann", "small", "a long answer", 2000)
		if c.Stream = stream; stream {
			r, err := post(ctx, p.proxy.addr, c)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil {
				t.Error(err)
			}
			_ = r.Body.Close()
		} else {
			go func() {
				until(t, "the second call", func() bool { return len(ledger(t, p.model.addr)) == 2 })
				cancel()
			}()
			if r, err := post(ctx, p.proxy.addr, c); err == nil {
				_ = r.Body.Close()
				t.Error("answered")
			}
		}
		cancel()
	}
	p.settled(t)
	for _, c := range ledger(t, p.model.addr) {
		if c.Status != "completed" || c.Usage.Completion < 20 {
			t.Errorf("%+v", c)
		}
	}
}

// TestProxyKilled has holds that the next proxy finds in the journal: one that the model has not heard
// of, and one of an answer that ends as its reader is gone.
func TestProxyKilled(t *testing.T) {
	p := open(t, []string{"-delay=1ms"})
	c := ask("acme/ann", "small", "a long answer", 2000)
	c.Stream = true
	r, err := post(t.Context(), p.proxy.addr, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if used(t, p.server, "user-tokens", "acme/ann") < 2000 {
		t.Error("not held")
	}
	p.proxy.kill()
	id := p.server.Do(t, "cl.mreserve 1 user-tokens acme/ann 50 ttl 1h").([]any)[2].(string)
	f, err := os.OpenFile(p.journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	line := `{"id":"` + id + `","model":"small","uses":[{"Limit":"user-tokens","Key":"acme/ann","Units":50}]}` + "\n" + `{"id":"torn`
	if _, err := f.WriteString(line); err != nil {
		t.Error(err)
	}
	_ = f.Close()
	p.proxy = p.start(t)
	p.settled(t)
	if n := len(ledger(t, p.model.addr)); n != 1 {
		t.Errorf("%d calls", n)
	}
	p.proxy.stop()
}

// TestAway has no cellserver, at first.
func TestAway(t *testing.T) {
	p := open(t, nil)
	p.server.Stop()
	c := ask("acme/ann", "small", "?", 20)
	if status, h, body := answer(t, p.proxy.addr, c); status != 503 || h.Get("Retry-After") != "1" {
		t.Errorf("%d, %v, %s", status, h, body)
	}
	p.proxy.stop()
	p.proxy = p.start(t, "-away=local")
	if status, h, body := answer(t, p.proxy.addr, c); status != 200 || h.Get("X-Ratelimit-Limit-Tokens") != "20000" {
		t.Errorf("%d, %v, %s", status, h, body)
	}
	_, port, _ := net.SplitHostPort(p.server.Addr)
	p.server = servertest.Start(t, binary, "--addr=127.0.0.1:"+port, "--limits-file="+filepath.Join(filepath.Dir(p.journal), "limits.yaml"))
	p.settled(t)
}
