package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// raw posts a body as it is.
func raw(t *testing.T, proxy, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+proxy+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sk-ann")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%.100s: %v", body, err)
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%.100s: %v", body, err)
	}
	return response.StatusCode, string(b)
}

func TestBodies(t *testing.T) {
	p := open(t, nil)
	const rest = `,"model":"small","messages":[{"role":"user","content":"?"}]}`
	for _, tt := range []struct {
		body   string
		status int
	}{
		{`null`, 400},
		{`[]`, 400},
		{`"?"`, 400},
		{``, 400},
		{`{`, 400},
		{strings.Repeat("[", 100_000), 400},
		{`{"max_tokens":"5"` + rest, 400},
		{`{"max_tokens":1e30` + rest, 400},
		{`{"max_tokens":5,"n":1000000` + rest, 400},
		{`{"MAX_TOKENS":5` + rest, 400}, // a server in Go takes it for max_tokens
		{`{"max_token\u017f":5` + rest, 400},
		{`{"stream":true,"stream_options":{"Include_usage":false}` + rest, 400},
		{`{"x":"` + strings.Repeat("x", 1<<20) + `"` + rest, 413},
		{`{"max_tokens":5,"max_tokens":7` + rest, 200},
		{`{"max_tokens":null,"stream":null,"stream_options":null` + rest, 200},
	} {
		if status, answer := raw(t, p.proxy.addr, tt.body); status != tt.status || status != 200 && !strings.Contains(answer, `"error"`) {
			t.Errorf("%.100s: %d, %s", tt.body, status, answer)
		}
	}
	p.settled(t)
}

// odd starts the proxy before a model of the test's, whose record of a call comes when the test ends it.
func odd(t *testing.T, answer http.HandlerFunc, args ...string) (p *place, record *atomic.Pointer[string]) {
	t.Helper()
	record = new(atomic.Pointer[string])
	m := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			answer(w, r)
			return
		}
		if text := record.Load(); text != nil {
			_, _ = io.WriteString(w, *text)
			return
		}
		_, _ = io.WriteString(w, `{"status":"in_progress"}`)
	}))
	t.Cleanup(m.Close)
	p = open(t, nil)
	p.proxy.stop()
	p.model.addr = m.Listener.Addr().String()
	p.proxy = p.start(t, args...)
	return p, record
}

// TestOddModels has answers that are none: a client has its error before the model says what it charges.
func TestOddModels(t *testing.T) {
	for _, tt := range []struct {
		answer string // "" closes the connection
		stream bool
		status int
		text   string
	}{
		{"", false, 502, "does not answer"},
		{"", true, 502, "does not answer"},
		{"nonsense", false, 502, "has failed"},
		{`{"usage":{"prompt_tokens":-5,"completion_tokens":1}}`, false, 502, "has failed"},
		{`{"usage":{"prompt_tokens":1,"completion_tokens":9223372036854775807}}`, false, 502, "has failed"},
		{"data: nonsense\n\n", true, 200, "has failed"},
		{"data: {\"choices\":[{}]}\n\n", true, 200, "has failed"},
		{"data: " + strings.Repeat("x", 2<<20), true, 200, "has failed"},
	} {
		p, record := odd(t, func(w http.ResponseWriter, _ *http.Request) {
			if tt.answer == "" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, tt.answer)
		})
		c := ask("acme/ann", "small", "?", 20)
		c.Stream = tt.stream
		status, _, body := answer(t, p.proxy.addr, c)
		if status != tt.status || !strings.Contains(body, tt.text) {
			t.Errorf("%.50q: %d, %s", tt.answer, status, body)
		}
		text := `{"status":"failed","usage":{"prompt_tokens":3,"completion_tokens":4}}`
		record.Store(&text)
		until(t, "the settlement", func() bool { return used(t, p.server, "user-tokens", "acme/ann") == 7 })
	}
}

// TestUsages has models that tell usage oddly, in streams.
func TestUsages(t *testing.T) {
	const chunk = `data:{"choices":[{}],"usage":%s}` + "\n\n"
	for _, tt := range []struct {
		usages []string
		want   int64
	}{
		{[]string{"null", "null"}, 12 + 2}, // the estimate of the prompt, and an event is a token
		{[]string{`{"prompt_tokens":3,"completion_tokens":1}`, `{"prompt_tokens":3,"completion_tokens":2}`}, 5},
		{[]string{`{"prompt_tokens":-3,"completion_tokens":1}`}, 12 + 1},
	} {
		p, _ := odd(t, func(w http.ResponseWriter, _ *http.Request) {
			for _, u := range tt.usages {
				_, _ = fmt.Fprintf(w, chunk, u)
			}
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		})
		c := ask("acme/ann", "small", "?", 20)
		c.Stream = true
		if _, _, body := answer(t, p.proxy.addr, c); !strings.Contains(body, "[DONE]") {
			t.Error(body)
		}
		messages, _ := json.Marshal(c.Messages)
		want := tt.want - 12 + 1 + int64(len(messages))/4
		if tt.want < 12 {
			want = tt.want
		}
		until(t, "the settlement", func() bool { return used(t, p.server, "user-tokens", "acme/ann") == want })
	}
}

// TestHangs has a model that hangs, before its answer and in it: the client is told after -ttl.
func TestHangs(t *testing.T) {
	for _, stream := range []bool{false, true} {
		over := make(chan struct{})
		p, record := odd(t, func(w http.ResponseWriter, r *http.Request) {
			if stream {
				_, _ = io.WriteString(w, "data: {\"choices\":[{}]}\n\n")
				_ = http.NewResponseController(w).Flush()
			}
			select {
			case <-r.Context().Done():
			case <-over:
			}
		}, "-ttl=200ms")
		c := ask("acme/ann", "small", "?", 20)
		c.Stream = stream
		_, _, body := answer(t, p.proxy.addr, c)
		if !strings.Contains(body, "the model ") {
			t.Error(body)
		}
		text := `{"status":"cancelled","usage":{"prompt_tokens":3,"completion_tokens":4}}`
		record.Store(&text)
		close(over)
	}
}

// TestSlowClient does not read its stream, and does not keep its hold for ever.
func TestSlowClient(t *testing.T) {
	gone := make(chan struct{})
	line := "data: {\"choices\":[{}],\"x\":\"" + strings.Repeat("x", 1<<16) + "\"}\n\n"
	p, _ := odd(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}, "-ttl=200ms")
	c := ask("acme/ann", "small", "?", 20)
	c.Stream = true
	r, err := post(t.Context(), p.proxy.addr, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	<-gone
}

func TestNumbersPass(t *testing.T) {
	bodies := make(chan []byte, 1)
	p, _ := odd(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- b
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	})
	raw(t, p.proxy.addr, `{"seed":12345678901234567890,"model":"small","messages":[]}`)
	if b := <-bodies; !bytes.Contains(b, []byte("12345678901234567890")) {
		t.Errorf("%s", b)
	}
}

// TestModelRefuses has the model's own refusals passed on, and nothing charged.
func TestModelRefuses(t *testing.T) {
	for status, want := range map[int]int{400: 400, 429: 429, 204: 502, 302: 502, 503: 502, 999: 502} {
		p, _ := odd(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if got, _, _ := answer(t, p.proxy.addr, ask("acme/ann", "small", "?", 20)); got != want {
			t.Errorf("%d: %d", status, got)
		}
		if got := used(t, p.server, "user-tokens", "acme/ann"); got != 0 {
			t.Errorf("%d: %d charged", status, got)
		}
	}
}

// TestStarts has proxies that cannot start, and say why.
func TestStarts(t *testing.T) {
	p := open(t, nil)
	dir := t.TempDir()
	keys := func(text string) string {
		file := filepath.Join(dir, fmt.Sprintf("keys%d", len(text)))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "-keys=" + file
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"another process has it", []string{"-journal=" + p.journal}},
		{"no such file", []string{"-journal=" + filepath.Join(dir, "none", "holds")}},
		{"address already in use", []string{"-addr=" + p.proxy.addr}},
		{"closed or local", []string{"-away=open"}},
		{"without a /", []string{keys("sk a/b c")}},
		{"write secret", []string{keys("sk a\xff c")}},
		{"write secret", []string{keys("sk a")}},
	} {
		args := append([]string{"-addr=127.0.0.1:0", "-journal=" + filepath.Join(dir, "holds")}, tt.args...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, filepath.Join(programs, "proxy"), args...).CombinedOutput()
		cancel()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%v: %v, %s", tt.args, err, out)
		}
	}
	if status, _, body := answer(t, p.proxy.addr, ask("acme/ann", "small", "?", 20)); status != 200 {
		t.Errorf("%d, %s", status, body)
	}
	p.settled(t)
}
