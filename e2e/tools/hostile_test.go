package tools

import (
	"path/filepath"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

// TestHostilePeers: a command ends with one line, whatever its server announces.
func TestHostilePeers(t *testing.T) {
	t.Parallel()
	file, limits := filepath.Join(t.TempDir(), "keys.csv"), harness.WriteFile(t, "limits: {}\n")
	if code, _, errOut := harness.Call(t, nil, "dump", "--from", "redis://"+resptest.StartHostile(t, "none", ""),
		"--format", "csv", file); code != 0 {
		t.Fatalf("a peer that is not hostile: %d, %s", code, errOut)
	}
	for what, hostile := range resptest.Hostile() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for command, args := range map[string][]string{
				"hello":    {"dump", "--from", "PEER", "--format", "csv", "-"},
				"scan":     {"dump", "--from", "PEER", "--format", "csv", "-"},
				"info":     {"import", "--dry-run", "PEER"},
				"exec":     {"import", "--dry-run", "PEER"},
				"pttl":     {"import", "--dry-run", "PEER"},
				"getrange": {"load", "--into", "PEER", "--format", "csv", file},
				"monitor":  {"shadow", "--from", "PEER", "--for", "10ms"},
				"ping":     {"shadow", "--from", "PEER", "--for", "10ms"},
				"cl.limit": {"limits", "diff", limits, "--addr", "PEER"},
			} {
				peer := "redis://" + resptest.StartHostile(t, command, hostile)
				args = append([]string(nil), args...)
				for i := range args {
					args[i] = strings.Replace(args[i], "PEER", peer, 1)
				}
				code, _, errOut := harness.Call(t, nil, args...)
				if code != 1 || strings.Count(errOut, "\n") != 1 || len(errOut) > 1000 {
					t.Errorf("%s, %s: %d, %.2000s", args[0], command, code, errOut)
				}
			}
		})
	}
}

// TestHostileStore: a server keeps answering, whatever its store announces.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	for what, hostile := range resptest.Hostile() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := harness.StartServer(t, "--store", "redis://"+resptest.StartHostile(t, "evalsha", hostile))
			nc := p.Dial(t)
			for range 20 {
				for _, command := range []string{"CL.THROTTLE k 1 1 60", "CL.SLIDINGWINDOW k 1 60", "TTL k", "DBSIZE"} {
					if got := harness.Reply(t, nc, command); got == "" || len(got) > 1000 {
						t.Fatalf("%s: %.2000s", command, got)
					}
				}
			}
			if got := harness.Reply(t, nc, "PING"); got != "+PONG" {
				t.Errorf("PING: %s", got)
			}
		})
	}
}
