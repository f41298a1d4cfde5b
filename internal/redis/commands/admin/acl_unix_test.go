//go:build unix

package admin_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/wire/peer"
)

// TestLoadIsNotWaitedFor: while ACL LOAD reads slowly, other clients of the event loop are served, also
// during EXEC.
func TestLoadIsNotWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"ACL LOAD\r\n":                  "+OK\r\n",
		"MULTI\r\nACL LOAD\r\nEXEC\r\n": "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n",
	} {
		s := commandstest.New(func(c *commands.Config) { c.ACLFile = pipe }).Session()
		replies, left, status := commandstest.Feed(t, s, in)
		if status != peer.Waiting {
			t.Errorf("%q: status %d, got %q", in, status, replies)
			continue
		}
		// This opens the pipe when it is read.
		if err := os.WriteFile(pipe, []byte(openDefault+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-s.Conn.Woken
		if replies += commandstest.Say(t, s, left); replies != want {
			t.Errorf("%q: got %q", in, replies)
		}
	}
}
