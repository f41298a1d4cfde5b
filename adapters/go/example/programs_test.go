package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/adapters/go/internal/servertest"
)

var binary, programs string // a binary, and a folder of them

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "example")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		programs = dir
		var out []byte
		build := exec.CommandContext(context.Background(), "go", "build", "-o", dir, "./model", "./proxy")
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return servertest.Run(m, "../../..", &binary)
}

// program is a running program of the example.
type program struct {
	addr  string
	cmd   *exec.Cmd
	ended chan struct{}
}

func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	addr := servertest.FreeAddr(t)
	cmd := exec.CommandContext(context.Background(), filepath.Join(programs, name), append(args, "-addr="+addr)...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{addr: addr, cmd: cmd, ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.ended) }()
	t.Cleanup(p.kill)
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return p
		}
		select {
		case <-p.ended:
			t.Fatalf("%s has ended", name)
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop has it end by itself.
func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
}

// call is a client's.
type call struct {
	Model     string         `json:"model"`
	User      string         `json:"user"`
	MaxTokens int64          `json:"max_tokens,omitempty"`
	Stream    bool           `json:"stream,omitempty"`
	Options   map[string]any `json:"stream_options,omitempty"`
	Messages  []message      `json:"messages"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func ask(user, model, content string, maxTokens int64) call {
	return call{Model: model, User: user, MaxTokens: maxTokens, Messages: []message{{"user", content}}}
}

// post sends a call with the secret of its user.
func post(ctx context.Context, proxy string, c call) (*http.Response, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+proxy+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(c.User, "/")
	r.Header.Set("Authorization", "Bearer sk-"+name)
	return http.DefaultClient.Do(r)
}

// answer posts a call, and reads all of its answer.
func answer(t *testing.T, proxy string, c call) (status int, header http.Header, body string) {
	t.Helper()
	r, err := post(t.Context(), proxy, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, r.Header, string(b)
}

// charge is what the model has charged for.
type charge struct {
	Model, User, Status string
	Usage               struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
	}
}

func (c charge) tokens() int64 { return c.Usage.Prompt + c.Usage.Completion }

// millionths is the price, by the proxy's list.
func (c charge) millionths() int64 {
	if c.Model == "large" {
		return 5*c.Usage.Prompt + 20*c.Usage.Completion
	}
	return (c.Usage.Prompt + 4*c.Usage.Completion + 1) / 2
}

func ledger(t *testing.T, model string) map[string]charge {
	t.Helper()
	r, err := http.Get("http://" + model + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	charges := map[string]charge{}
	if err := json.NewDecoder(r.Body).Decode(&charges); err != nil {
		t.Fatal(err)
	}
	return charges
}

// used returns what cellserver says of a key.
func used(t *testing.T, s *servertest.Server, limit, key string) int64 {
	t.Helper()
	v := s.Do(t, "cl.check "+limit+" "+key+" 0").([]any)
	return v[1].(int64) - v[2].(int64)
}

// until waits for what comes by itself.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

// limits writes limits.yaml with other text in places, of years in place of days, which end during no test.
func limits(t *testing.T, file string, oldNew ...string) {
	t.Helper()
	b, err := os.ReadFile("limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(append(oldNew, "every: day", "every: year")...).Replace(string(b))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
