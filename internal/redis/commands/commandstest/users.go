package commandstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
)

// UserRig is a rig whose users stand in an ACL file.
type UserRig struct {
	*Rig
	t    testing.TB
	file string
}

// NewUserRig returns a rig whose users are those of some lines.
func NewUserRig(t testing.TB, lines ...string) *UserRig {
	t.Helper()
	r := &UserRig{t: t, file: filepath.Join(t.TempDir(), "users.acl")}
	r.Rig = New(func(c *commands.Config) { c.ACLFile = r.file })
	r.Rewrite(lines...)
	return r
}

// Write changes the file.
func (r *UserRig) Write(lines ...string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// Rewrite changes the file and has it read.
func (r *UserRig) Rewrite(lines ...string) {
	r.t.Helper()
	r.Write(lines...)
	if err := r.Engine.ReloadUsers(); err != nil {
		r.t.Fatal(err)
	}
}

// Login returns a session of a user, whose password is pw.
func (r *UserRig) Login(user string) *Client {
	r.t.Helper()
	s := r.Session()
	if got := Say(r.t, s, "AUTH "+user+" pw\r\n"); got != "+OK\r\n" {
		r.t.Fatalf("AUTH %s: got %q", user, got)
	}
	return s
}
