package replication

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/shard"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
	"cellserver/internal/test/patience"
)

const someHistory = "0123456789abcdef0123456789abcdef01234567"

func keptRoles() []keptRole {
	leader := replicas.Address{Host: "10.0.0.1", Port: 6380}
	return []keptRole{
		{}, {leader: leader}, {history: someHistory}, {leader, someHistory, 52_340}, {leader: replicas.Address{Host: "::1", Port: 65535}},
		{replicas.Address{Host: "limits-0.limits.svc", Port: 1}, someHistory, 1<<63 - 1},
	}
}

func TestRoleIsReadBack(t *testing.T) {
	for _, want := range keptRoles() {
		if got, err := parseRole(string(want.text())); err != nil || *got != want {
			t.Errorf("%s is read as %+v, %v", want.text(), got, err)
		}
	}
}

func TestRoleRefusals(t *testing.T) {
	for _, text := range []string{
		"", "leader\n", "cellserver role, format 2\nleader\n", roleHeader + "follower\n", roleHeader + "replica\n", roleHeader + "replica 10.0.0.1\n",
		roleHeader + "replica 10.0.0.1:0\n", roleHeader + "replica a b:1\n", roleHeader + "leader\nhistory abc 1\n", roleHeader + "\n",
		roleHeader + "leader\nhistory " + someHistory + "\n", roleHeader + "leader\nhistory " + someHistory + " -1\n",
		roleHeader + "leader\nhistory " + someHistory + " 12x\n", roleHeader + "leader\nhistory " + someHistory + " 9223372036854775808\n",
	} {
		if got, err := parseRole(text); !errors.Is(err, errRole) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

// FuzzRole: what is read is written and read again as the same.
func FuzzRole(f *testing.F) {
	for _, r := range keptRoles() {
		f.Add(string(r.text()))
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseRole(text)
		if err != nil {
			return
		}
		if second, err := parseRole(string(first.text())); err != nil || *second != *first {
			t.Errorf("%q is %+v, and then %+v, %v", text, first, second, err)
		}
	})
}

// newNode returns a node without others, which keeps its role.
func newNode(dir *disktest.Dir) *Node {
	c, s := &fakeClock{}, shard.New()
	return New(Config{
		Store: s, Gate: gate.New(s, c.Now), Clock: c, Definitions: noDefinitions{}, Dir: dir, Log: slog.New(slog.DiscardHandler), KillClients: func() {}, EndTurns: func() {},
		Settings: Settings{Backlog: 1000},
	})
}

// TestRoleIsKept: a change of role outlasts the process at once, and a place in a history one start after a
// graceful end.
func TestRoleIsKept(t *testing.T) {
	dir := disktest.New()
	text := func() string { return strings.TrimPrefix(string(dir.Contents(RoleName)), roleHeader) }
	first := newNode(dir)
	if err := first.Begin(t.Context(), Beginning{}); err != nil || text() != "" {
		t.Fatalf("a new leader has kept %q, %v", text(), err)
	}
	if first.KeepPlace(); text() != "" {
		t.Errorf("one that was never followed has kept %q", text())
	}
	n := newNode(dir)
	n.Follow(replicas.Address{Host: "a", Port: 1})
	if !patience.Until(func() bool { return text() == "replica a:1\n" }) { // in the background
		t.Errorf("it keeps %q", text())
	}
	n.role, n.history = replicas.Replica, someHistory
	n.backlog.reset(77)
	if n.KeepPlace(); text() != "replica a:1\nhistory "+someHistory+" 77\n" {
		t.Errorf("it keeps %q", text())
	}

	next := newNode(dir)
	if err := next.Begin(t.Context(), Beginning{}); err != nil || next.wanted.leader.Host != "a" || next.history != someHistory || next.backlog.end != 77 {
		t.Errorf("it begins as %+v at %s %d, %v", next.wanted, next.history, next.backlog.end, err)
	}
	if text() != "replica a:1\n" {
		t.Errorf("after the start there is still %q", text())
	}
	next.complete = false // of a full sync under way
	if next.KeepPlace(); text() != "replica a:1\n" {
		t.Errorf("without all states it keeps %q", text())
	}
	dir.SetContents(RoleName, []byte("what?"))
	if err := newNode(dir).Begin(t.Context(), Beginning{}); !errors.Is(err, errRole) {
		t.Errorf("a damaged file: %v", err)
	}
}
