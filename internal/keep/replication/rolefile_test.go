package replication

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/shard"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
	"cellserver/internal/test/patience"
)

const someHistory = "0123456789abcdef0123456789abcdef01234567"

func keptRoles() []keptRole {
	leader, last := replicas.Address{Host: "10.0.0.1", Port: 6380}, replicas.Address{Host: "limits-0.limits.svc", Port: 1}
	at := place{someHistory, 52_340, 9, 1017}
	return []keptRole{
		{}, {leader: leader}, {place: at}, {leader: leader, place: at, states: 9}, {leader: replicas.Address{Host: "::1", Port: 65535}},
		{leader: last, place: place{someHistory, 1<<63 - 1, 1<<64 - 1, 1<<64 - 1}, states: 1<<64 - 1}, {last: last, states: 7},
	}
}

const oldHeader = "cellserver role, format 1\n"

// summed returns a text of the present format with its checksum.
func summed(text string) string {
	return string(disk.AppendSum([]byte(text)))
}

func TestRoleIsReadBack(t *testing.T) {
	for _, want := range keptRoles() {
		if got, err := parseRole(want.text()); err != nil || *got != want {
			t.Errorf("%s is read as %+v, %v", want.text(), got, err)
		}
	}
}

// TestOldRole: format 1 is read.
func TestOldRole(t *testing.T) {
	leader := replicas.Address{Host: "10.0.0.1", Port: 6380}
	for text, want := range map[string]keptRole{
		"leader\n": {isOld: true}, "replica 10.0.0.1:6380\n": {isOld: true, leader: leader},
		"leader\nhistory " + someHistory + " 52340\n": {isOld: true, place: place{history: someHistory, offset: 52_340}},
	} {
		if got, err := parseRole([]byte(oldHeader + text)); err != nil || *got != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}

func TestRoleRefusals(t *testing.T) {
	const header = "cellserver role, format 2\n"
	for _, text := range []string{
		"", "leader\n", header + "leader\n", oldHeader, oldHeader + "leader", oldHeader + "replica 10.0.0.1:638", oldHeader + "leader\nstates 7\n",
		oldHeader + "follower\n", oldHeader + "replica\n", oldHeader + "replica 10.0.0.1\n",
		oldHeader + "replica 10.0.0.1:0\n", oldHeader + "replica a b:1\n", oldHeader + "leader\nhistory abc 1\n", oldHeader + "\n",
		oldHeader + "leader\nhistory " + someHistory + "\n", oldHeader + "leader\nhistory " + someHistory + " -1\n",
		oldHeader + "leader\nhistory " + someHistory + " 12x\n", oldHeader + "leader\nhistory " + someHistory + " 9223372036854775808\n",
		summed(header), summed(header + "states 7\n"), summed(header + "leader\nstates 0\n"), summed(header + "leader\nstates 7\nstates 7\n"),
		summed(header + "leader\nlast x\n"), summed(header + "leader\nhistory " + someHistory + " 1\n"), summed(header + "leader\nwhat 1\n"),
		summed("cellserver role, format x\nleader\n"), summed("leader\n"), summed(header+"leader\n") + "\n",
	} {
		if got, err := parseRole([]byte(text)); !errors.Is(err, errRole) {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

// TestDamagedRole: a damaged or cut role is never taken for another one, nor for one of a later version.
func TestDamagedRole(t *testing.T) {
	for _, r := range keptRoles() {
		text := r.text()
		for i := range text {
			if got, err := parseRole(text[:i]); !errors.Is(err, errRole) {
				t.Errorf("%q is read as %+v, %v", text[:i], got, err)
			}
			for bit := range 8 {
				broken := bytes.Clone(text)
				broken[i] ^= 1 << bit
				if got, err := parseRole(broken); !errors.Is(err, errRole) {
					t.Errorf("%q is read as %+v, %v", broken, got, err)
				}
			}
		}
	}
	later := summed("cellserver role, format 3\nleader\nwhatever\n")
	if _, err := parseRole([]byte(later)); err == nil || errors.Is(err, errRole) || !strings.Contains(err.Error(), "is of format 3, and this version reads formats up to 2") {
		t.Errorf("a later version's role: %v", err)
	}
}

// TestCutRoleIsNoOther: of each part of a role's file, none has the server follow another leader, or lead.
func TestCutRoleIsNoOther(t *testing.T) {
	dir := disktest.New()
	if _, err := CheckRole(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	for _, want := range keptRoles() {
		text := string(want.text())
		for n := range text {
			dir.SetContents(RoleName, []byte(text[:n]))
			size, err := CheckRole(dir)
			got, parseErr := parseRole([]byte(text[:n]))
			switch {
			case (err == nil) != (parseErr == nil), size != int64(n):
				t.Errorf("%q: checked %v, %d bytes, and read %v", text[:n], err, size, parseErr)
			case parseErr == nil && (got.leader != want.leader || got.place.history != ""): // it may lack its place
				t.Errorf("%q is read as %+v", text[:n], got)
			case err != nil && !errors.Is(err, persist.ErrDamaged):
				t.Errorf("%q: %v", text[:n], err)
			}
		}
	}
	leader := keptRole{leader: replicas.Address{Host: "a", Port: 1}}
	dir.SetContents(RoleName, leader.text())
	if _, err := CheckRole(dir); err != nil {
		t.Error(err)
	}
}

// FuzzRole: what is read is written and read again as the same.
func FuzzRole(f *testing.F) {
	for _, r := range keptRoles() {
		f.Add(string(r.text()))
	}
	f.Add(oldHeader + "replica 10.0.0.1:6380\nhistory " + someHistory + " 7\n")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseRole([]byte(text))
		if err != nil {
			return
		}
		if first.isOld {
			*first = keptRole{leader: first.leader}
		}
		if second, err := parseRole(first.text()); err != nil || *second != *first {
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
	is := func(want *keptRole) bool {
		text := dir.Contents(RoleName)
		return want == nil && text == nil || want != nil && string(text) == string(want.text())
	}
	kept := func() string { return string(dir.Contents(RoleName)) }
	first := newNode(dir)
	if err := first.Begin(t.Context(), Beginning{}); err != nil || !is(nil) {
		t.Fatalf("a new leader has kept %q, %v", kept(), err)
	}
	if first.KeepPlace(); !is(nil) {
		t.Errorf("one that was never followed has kept %q", kept())
	}
	a := replicas.Address{Host: "a", Port: 1}
	n := newNode(dir)
	if err := n.Begin(t.Context(), Beginning{}); err != nil {
		t.Fatal(err)
	}
	n.Follow(a)
	if !patience.Until(func() bool { return is(&keptRole{leader: a}) }) { // in the background
		t.Errorf("it keeps %q", kept())
	}
	dir.SetContents(RoleName, []byte(oldHeader+"replica a:1\nhistory "+someHistory+" 77\n"))

	next := newNode(dir)
	err := next.Begin(t.Context(), Beginning{})
	next.mu.Lock() // the role is written in the background
	if err != nil || next.role.leader != a || next.history != someHistory || next.backlog.end != 77 {
		t.Errorf("it begins as %+v at %s %d, %v", next.role, next.history, next.backlog.end, err)
	}
	next.mu.Unlock()
	if !is(&keptRole{leader: a}) {
		t.Errorf("after the start there is still %q", kept())
	}
	next.mu.Lock()
	next.complete = false // of a full sync under way
	next.mu.Unlock()
	if next.KeepPlace(); !is(&keptRole{leader: a}) {
		t.Errorf("without all states it keeps %q", kept())
	}
	dir.SetContents(RoleName, []byte("what?"))
	if err := newNode(dir).Begin(t.Context(), Beginning{}); !errors.Is(err, errRole) {
		t.Errorf("a damaged file: %v", err)
	}
}
