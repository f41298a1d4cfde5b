package limitsfile

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/keep/persist/disk/disktest"
)

// someChanges are some changes of each form.
func someChanges() []namedlimit.Changes {
	many := make([]namedlimit.KeyOverride, 10_000)
	for i := range many {
		many[i] = set(fmt.Sprint("key", i), 1+int64(i))
	}
	return []namedlimit.Changes{
		{All: true, Definitions: variety(), Overrides: keptChanges()}, {All: true, Definitions: []namedlimit.Definition{}},
		{Definitions: variety()}, {Definitions: []namedlimit.Definition{}}, {Overrides: keptChanges()}, {Overrides: many},
		{All: true, Definitions: variety(), Overrides: many}, {Definitions: withOptions()},
	}
}

// TestChangesAreReadBack: the texts of a change are read as the same change, in parts.
func TestChangesAreReadBack(t *testing.T) {
	for i, changes := range someChanges() {
		var got namedlimit.Changes
		texts := ChangeTexts(changes)
		for j, text := range texts {
			part, err := ReadChanges(text)
			if err != nil || j > 0 && (part.All || part.Definitions != nil) {
				t.Fatalf("change %d, text %d: %+v, %v", i, j, part, err)
			}
			if j == 0 {
				got = part
			} else {
				got.Overrides = append(got.Overrides, part.Overrides...)
			}
			if len(text) > 2*textBytes {
				t.Errorf("a text has %d bytes", len(text))
			}
		}
		if got.All != changes.All || len(got.Definitions) != len(changes.Definitions) || (got.Definitions == nil) != (changes.Definitions == nil) || !same(got.Overrides, changes.Overrides) {
			t.Errorf("change %d is read as %+v", i, got)
		}
		for j := range changes.Definitions {
			if !got.Definitions[j].Equal(&changes.Definitions[j]) {
				t.Errorf("change %d: definition %d is read as %+v", i, j, got.Definitions[j])
			}
		}
	}
}

// TestDamagedChanges is refused as a whole.
func TestDamagedChanges(t *testing.T) {
	for _, changes := range someChanges()[:5] {
		for _, text := range ChangeTexts(changes) {
			for i := range text {
				broken := bytes.Clone(text)
				broken[i] ^= 4
				if got, err := ReadChanges(broken); err == nil {
					t.Errorf("%q is read as %+v", broken, got)
				}
			}
		}
	}
}

// FuzzReadChanges: what is read is written and read again as the same.
func FuzzReadChanges(f *testing.F) {
	for _, changes := range someChanges()[:5] {
		for _, text := range ChangeTexts(changes) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := ReadChanges(text)
		if err != nil {
			return
		}
		if first.All && first.Definitions == nil {
			first.Definitions = []namedlimit.Definition{} // All says so itself
		}
		texts := ChangeTexts(first)
		if len(texts) > 1 {
			return
		}
		var second namedlimit.Changes
		if len(texts) == 1 {
			second, err = ReadChanges(texts[0])
		}
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%q is %+v, and then %+v, %v", text, first, second, err)
		}
	})
}

// TestReplicated: a server's limits follow another's by texts; its own file's definitions win, and what is
// followed is kept in its data directory.
func TestReplicated(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "limits.yml"), disktest.New()
	write(t, path, "limits:\n  b: {rules: [{algorithm: fixed_window, max_count: 3, period: 60}]}\n")
	leader, replica := New(config()), New(config(in(dir), func(c *Config) { c.File = path }))
	for _, r := range []*namedlimit.Registry{leader, replica} {
		if err := r.Load(); err != nil {
			t.Fatal(err)
		}
	}
	if err := replica.Reload(); err != nil {
		t.Fatal(err)
	}
	from, to := Replicated{leader}, Replicated{replica}
	from.Record(true)
	own := replica.Lookup([]byte("b"))
	if own == nil {
		t.Fatal("the file has no b")
	}
	step := func() {
		t.Helper()
		for _, text := range from.TakeRecorded(true) {
			if err := to.Apply(text); err != nil {
				t.Error(err)
			}
		}
	}
	mustSet(t, leader, definition("a", 5))
	mustSet(t, leader, definition("b", 5))
	if _, err := leader.Override(namedlimit.KeyOverride{Limit: "a", Key: "k", Policy: byRules(window(1, 1, 1))}); err != nil {
		t.Fatal(err)
	}
	step()
	if got := replica.Lookup([]byte("b")); got == nil || got.Source != own.Source || !got.Equal(&own.Definition) || !has(replica, definition("a", 5)) || replica.NumOverrides() != 1 {
		t.Errorf("b is %+v, of %d overrides", got, replica.NumOverrides())
	}
	if from.TakeRecorded(true) != nil {
		t.Error("nothing has changed, and is recorded")
	}
	restarted := New(config(in(dir)))
	if err := restarted.Load(); err != nil || !has(restarted, definition("a", 5)) || restarted.NumOverrides() != 1 {
		t.Errorf("a restart has %+v, %v", restarted.Everything(), err)
	}
	dir.Before = func(disktest.Op, string) error { return errors.New("the disk is full") }
	mustSet(t, leader, definition("c", 5))
	for _, text := range from.TakeRecorded(true) {
		if err := to.Apply(text); err == nil {
			t.Error("a full disk is no error")
		}
	}
	if !has(replica, definition("c", 5)) {
		t.Error("c does not hold in memory")
	}
	if err := to.Apply([]byte("what?\n")); !errors.Is(err, ErrChanges) {
		t.Errorf("an unknown text: %v", err)
	}
}
