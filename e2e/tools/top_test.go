package tools

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// TestTopOnTerminal: a screen with escaped keys, which says that the server goes away and is back, until
// Ctrl-C.
func TestTopOnTerminal(t *testing.T) {
	t.Parallel()
	limits := harness.WriteFile(t, "limits: {api: {rules: [{algorithm: fixed_window, max_count: 5, period: 60}]}}\n")
	server := func(addr string) *harness.Process {
		p := harness.StartServer(t, "--addr", addr, "--limits-file", limits)
		for range 3 { // as calls are not counted while the page reads the ranking
			harness.SayTo(t, p.Dial(t), "CL.THROTTLE \"evil\\x1b[2J\" 0 1 60\r\nCL.THROTTLE plain 0 1 60\r\nPING\r\n", "+PONG\r\n")
		}
		return p
	}
	p := server(processtest.FreeAddr(t))
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	seen := &processtest.Log{}
	go func() { _, _ = io.Copy(seen, master) }() // until EIO
	cmd := harness.Command(t, "top", "--addr", p.Addr, "--interval", "0.1")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await := func(text string) {
		t.Helper()
		if !patience.Until(func() bool { return strings.Contains(seen.String(), text) }) {
			t.Fatalf("it does not show %q, but %q", text, seen.String())
		}
	}
	await(`evil\x1b[2J"`)
	await("api  FIXEDWINDOW 5 60")
	await("0 limited/s")
	p.Stop(t, syscall.SIGTERM)
	await("trying again: connection refused")
	server(p.Addr)
	await("; the server has restarted")
	if _, err := master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	await("\x1b[?1049l")
	if strings.Contains(seen.String(), "evil\x1b[2J") {
		t.Error("a key wrote to the terminal")
	}
}

// TestTopAsText: rounds go to a pipe; without an answer or rights one line says what to do.
func TestTopAsText(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--aclfile", harness.WriteFile(t,
		"user default on nopass ~* +@all\nuser few on >pw ~* +info +cl.top +cl.limit|list\nuser none on >pw ~*\n"))
	for range 3 { // as calls are not counted while the page reads the ranking
		harness.SayTo(t, p.Dial(t), "CL.THROTTLE k 9 1 60\r\nCL.LIMIT SET api 4 5 60\r\n", "+OK\r\n")
	}
	gone := processtest.FreeAddr(t)
	for _, tt := range []struct {
		addr           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{p.Addr, []string{"-n", "2", "--limited"}, 0, "Most limited keys: none stands out\n\nNamed limits\n", ""},
		{"redis://few:pw@" + p.Addr, []string{"--rounds", "1"}, 0, "100 %  k\n\nNamed limits: " + p.Addr + ": NOPERM ", ""},
		{"redis://none:pw@" + p.Addr, nil, 1, "", "cellserver: top: " + p.Addr + ": NOPERM "},
		{gone, nil, 1, "", "cellserver: top: " + gone + ": dial tcp " + gone + ": connect: connection refused; check the address, and that the server runs\n"},
		{"redis://" + p.Addr + "/x", nil, 2, "", "cellserver: --addr: want a URL such as "},
	} {
		code, out, errOut := harness.Call(t, nil, append([]string{"top", "--interval", "0.1", "--addr", tt.addr}, tt.args...)...)
		if code != tt.code || !strings.Contains(out, tt.stdout) || tt.stdout == "" && out != "" || !strings.HasPrefix(errOut, tt.stderr) ||
			tt.stderr == "" && errOut != "" || strings.Count(errOut, "\n") != tt.code&1+tt.code>>1 {
			t.Errorf("%s %q: got %d\n%s\n%s", tt.addr, tt.args, code, out, errOut)
		}
	}
}
