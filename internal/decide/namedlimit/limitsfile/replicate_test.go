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

// toldChanges are some changes of each form.
func toldChanges() []namedlimit.Told {
	many := make([]namedlimit.KeyOverride, 10_000)
	for i := range many {
		many[i] = set(fmt.Sprint("key", i), 1+int64(i))
	}
	return []namedlimit.Told{
		{All: true, Definitions: variety(), Overrides: keptChanges()}, {All: true, Definitions: []namedlimit.Definition{}},
		{Definitions: variety()}, {Definitions: []namedlimit.Definition{}}, {Overrides: keptChanges()}, {Overrides: many},
		{All: true, Definitions: variety(), Overrides: many},
	}
}

// TestToldIsReadBack: the texts of a change are read as the same change, in parts.
func TestToldIsReadBack(t *testing.T) {
	for i, told := range toldChanges() {
		var got namedlimit.Told
		texts := ToldTexts(told)
		for j, text := range texts {
			part, err := ReadTold(text)
			if err != nil || j > 0 && (part.All || part.Definitions != nil) {
				t.Fatalf("change %d, text %d: %+v, %v", i, j, part, err)
			}
			if j == 0 {
				got = part
			} else {
				got.Overrides = append(got.Overrides, part.Overrides...)
			}
			if len(text) > 2*toldBytes {
				t.Errorf("a text has %d bytes", len(text))
			}
		}
		if got.All != told.All || len(got.Definitions) != len(told.Definitions) || (got.Definitions == nil) != (told.Definitions == nil) || !same(got.Overrides, told.Overrides) {
			t.Errorf("change %d is read as %+v", i, got)
		}
		for j := range told.Definitions {
			if !got.Definitions[j].Equal(&told.Definitions[j]) {
				t.Errorf("change %d: definition %d is read as %+v", i, j, got.Definitions[j])
			}
		}
	}
}

// TestDamagedTold is refused as a whole.
func TestDamagedTold(t *testing.T) {
	for _, told := range toldChanges()[:5] {
		for _, text := range ToldTexts(told) {
			for i := range text {
				broken := bytes.Clone(text)
				broken[i] ^= 4
				if got, err := ReadTold(broken); err == nil {
					t.Errorf("%q is read as %+v", broken, got)
				}
			}
		}
	}
}

// FuzzReadTold: what is read is written and read again as the same.
func FuzzReadTold(f *testing.F) {
	for _, told := range toldChanges()[:5] {
		for _, text := range ToldTexts(told) {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := ReadTold(text)
		if err != nil {
			return
		}
		if first.All && first.Definitions == nil {
			first.Definitions = []namedlimit.Definition{} // All says so itself
		}
		texts := ToldTexts(first)
		if len(texts) > 1 {
			return
		}
		var second namedlimit.Told
		if len(texts) == 1 {
			second, err = ReadTold(texts[0])
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
	from.Tell(true)
	own := replica.Lookup([]byte("b"))
	if own == nil {
		t.Fatal("the file has no b")
	}
	step := func() {
		t.Helper()
		for _, text := range from.TakeTold(true) {
			if err := to.Follow(text); err != nil {
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
	if from.TakeTold(true) != nil {
		t.Error("nothing has changed, and is told")
	}
	restarted := New(config(in(dir)))
	if err := restarted.Load(); err != nil || !has(restarted, definition("a", 5)) || restarted.NumOverrides() != 1 {
		t.Errorf("a restart has %+v, %v", restarted.Everything(), err)
	}
	dir.Before = func(disktest.Op, string) error { return errors.New("the disk is full") }
	mustSet(t, leader, definition("c", 5))
	for _, text := range from.TakeTold(true) {
		if err := to.Follow(text); err == nil {
			t.Error("a full disk is no error")
		}
	}
	if !has(replica, definition("c", 5)) {
		t.Error("c does not hold in memory")
	}
	if err := to.Follow([]byte("what?\n")); !errors.Is(err, ErrTold) {
		t.Errorf("an unknown text: %v", err)
	}
}
