package clients

import (
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

func TestRedisCLIOneShot(t *testing.T) {
	p := harness.StartServer(t)
	tests := []struct {
		args string
		want string // prefix of the output, whose last number depends on the machine
	}{
		{"cl.throttle laoqian:reply 15 30 60 1", "0\n16\n15\n-1\n2\n"},
		{"cl.throttle slow 15 1 3600 1", "0\n16\n15\n-1\n3600\n"},
		{"--no-raw cl.throttle slow 15 1 3600 15", "1) (integer) 0\n2) (integer) 16\n3) (integer) 0\n4) (integer) -1\n5) (integer) 5"},
		{"-3 --json cl.throttle other 0 1 1", "[0,1,0,-1,1]\n"},
		{"-n 5 exists slow", "0\n"},
		{"exists slow", "1\n"},
		{"cl.throttle a b 1 1", "Cell error: Store error: Couldn't parse as integer: b\n\n"},
	}
	for _, tt := range tests {
		out, err := harness.RedisTool(t, p, "redis-cli", strings.Fields(tt.args)...).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), tt.want) {
			t.Errorf("redis-cli %s printed %q (%v), want %q", tt.args, out, err, tt.want)
		}
	}
	socket := filepath.Join(t.TempDir(), "cell.sock")
	harness.StartServer(t, "--addr", "", "--unixsocket", socket)
	if out, err := processtest.Command(t, processtest.Need(t, "redis-cli"), "-s", socket, "ping").CombinedOutput(); err != nil || string(out) != "PONG\n" {
		t.Errorf("over the unix socket redis-cli printed %q, %v", out, err)
	}
}

type terminal struct {
	file io.Writer
	seen processtest.Log
	read int // bytes of seen that expect has consumed
}

func startTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 160})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{file: file}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(&term.seen, file) // EIO when the program ends
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-ended
		_ = file.Close()
		if t.Failed() {
			t.Logf("on the terminal:\n%q", term.seen.String())
		}
	})
	return term
}

func (term *terminal) enter(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(term.file, text); err != nil {
		t.Fatal(err)
	}
}

// slow matches what redis-cli prints after a reply that took half a second.
var slow = regexp.MustCompile(`\(\d+\.\d+s\)\r\n`)

// expect waits until the program has printed text.
func (term *terminal) expect(t *testing.T, text string) {
	t.Helper()
	var seen string
	if !patience.Until(func() bool {
		seen = slow.ReplaceAllString(term.seen.String(), "")[term.read:]
		return strings.Contains(seen, text)
	}) {
		t.Fatalf("%q did not appear, only %q", text, seen)
	}
	term.read += strings.Index(seen, text) + len(text)
}

func TestRedisCLIInteractive(t *testing.T) {
	p := harness.StartServer(t)
	cmd := harness.RedisTool(t, p, "redis-cli")
	term := startTerminal(t, cmd)
	prompt := p.Addr + "> "

	term.expect(t, prompt)
	term.enter(t, "cl.throttle ")
	term.expect(t, "cl.throttle \x1b[0;90;49mkey max_burst count_per_period period [quantity]")
	term.enter(t, "k 15 1 3600 1\r")
	term.expect(t, "\r\n1) (integer) 0\r\n2) (integer) 16\r\n3) (integer) 15\r\n4) (integer) -1\r\n5) (integer) 3600\r\n"+prompt)
	term.enter(t, "cl.throt\t k 15 1 3600\r") // completed from COMMAND DOCS
	term.expect(t, "\r\n1) (integer) 0\r\n2) (integer) 16\r\n3) (integer) 14\r\n4) (integer) -1\r\n5) (integer) 7")
	term.expect(t, prompt)
	term.enter(t, "help cl.throttle\r")
	term.expect(t, "CL.THROTTLE\x1b[0m \x1b[90mkey max_burst")
	term.expect(t, prompt)

	term.enter(t, "select 3\r")
	prompt = p.Addr + "[3]> "
	term.expect(t, "\r\nOK\r\n"+prompt)
	term.enter(t, "dbsize\r")
	term.expect(t, "\r\n(integer) 0\r\n")
	term.expect(t, prompt)
	term.enter(t, "hello 3\r")
	term.expect(t, `3# "proto" => (integer) 3`)
	term.expect(t, prompt)
	term.enter(t, "cl.throttle k 0 1 1\r")
	term.expect(t, "5) (integer) 1\r\n")
	term.expect(t, prompt)

	term.enter(t, "quit\r")
	if err := cmd.Wait(); err != nil {
		t.Error("redis-cli ended with", err)
	}
	if trouble := regexp.MustCompile(`(?i)warning|error`).FindString(term.seen.String()); trouble != "" {
		t.Errorf("redis-cli printed %q", trouble)
	}
}
