package acl

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testCommands is a small server: some of Redis's commands with their categories, and one of a module.
func testCommands() []Command {
	return []Command{
		{Name: "get", Categories: []string{"read", "string", "fast"}},
		{Name: "set", Categories: []string{"write", "string", "slow"}},
		{Name: "mget", Categories: []string{"read", "string", "fast"}},
		{Name: "del", Categories: []string{"keyspace", "write", "slow"}},
		{Name: "sort", Categories: []string{"write", "set", "sortedset", "list", "slow", "dangerous"}},
		{Name: "ttl", Categories: []string{"keyspace", "read", "fast"}},
		{Name: "select", Categories: []string{"fast", "connection"}},
		{Name: "auth", Categories: []string{"fast", "connection"}, NoAuth: true},
		{Name: "cl.throttle"},
		{Name: "config", Categories: []string{"slow"}},
		{Name: "config|get", Parent: "config", Categories: []string{"admin", "slow", "dangerous"}},
		{Name: "config|set", Parent: "config", Categories: []string{"admin", "slow", "dangerous"}},
		{Name: "config|help", Parent: "config", Categories: []string{"slow"}},
		{Name: "debug", Categories: []string{"admin", "slow", "dangerous"}},
		{Name: "debug|sleep", Parent: "debug", Categories: []string{"admin", "slow", "dangerous"}},
		{Name: "cluster", Categories: []string{"slow"}}, // has subcommands in Redis, but not here
	}
}

// command returns the index of one of testCommands.
func command(t testing.TB, name string) int {
	t.Helper()
	id := slices.IndexFunc(testCommands(), func(c Command) bool { return c.Name == name })
	if id < 0 {
		t.Fatalf("no command %q", name)
	}
	return id
}

// aclFile writes lines to a file.
func aclFile(t testing.TB, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loaded returns the users of an aclfile.
func loaded(t testing.TB, lines ...string) *Users {
	t.Helper()
	users := NewUsers(testCommands())
	if _, err := users.LoadFile(aclFile(t, lines...)); err != nil {
		t.Fatal(err)
	}
	return users
}

func mayRun(u *User, command int, firstArg []byte) bool {
	reason, _ := u.Check(command, firstArg, nil)
	return reason != DeniedCommand
}

// mayRead reports whether any of the user's selectors may read the key.
func mayRead(u *User, key string) bool {
	return slices.ContainsFunc(u.rules.Load().selectors, func(s selector) bool { return s.mayAccess([]byte(key), Read) })
}
