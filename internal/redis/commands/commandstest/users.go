package commandstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
)

// UserHarness is a harness with an ACL file.
type UserHarness struct {
	*Harness
	t    testing.TB
	file string
}

// NewUserHarness returns a harness whose ACL file has the given lines.
func NewUserHarness(t testing.TB, lines ...string) *UserHarness {
	t.Helper()
	return NewUserHarnessOf(t, func(*commands.Config) {}, lines...)
}

// NewUserHarnessOf is NewUserHarness with a changed configuration.
func NewUserHarnessOf(t testing.TB, change func(*commands.Config), lines ...string) *UserHarness {
	t.Helper()
	r := &UserHarness{t: t, file: filepath.Join(t.TempDir(), "users.acl")}
	r.Harness = New(change, func(c *commands.Config) { c.ACLFile = r.file })
	r.Rewrite(lines...)
	return r
}

// Write replaces the file's lines.
func (r *UserHarness) Write(lines ...string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// Rewrite changes the file and reloads it.
func (r *UserHarness) Rewrite(lines ...string) {
	r.t.Helper()
	r.Write(lines...)
	if err := r.Engine.ReloadUsers(); err != nil {
		r.t.Fatal(err)
	}
}

// Login returns a session of a user whose password is pw.
func (r *UserHarness) Login(user string) *Client {
	r.t.Helper()
	s := r.Session()
	if got := Say(r.t, s, "AUTH "+user+" pw\r\n"); got != "+OK\r\n" {
		r.t.Fatalf("AUTH %s: got %q", user, got)
	}
	return s
}
