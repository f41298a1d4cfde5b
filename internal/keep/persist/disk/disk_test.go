package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/persist/disk/disktest"
)

func write(t *testing.T, d disk.Dir, name, text string, sync bool) {
	t.Helper()
	f, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, d disk.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	if err != nil {
		return ""
	}
	b, err := io.ReadAll(f)
	if err != nil || f.Close() != nil || int64(len(b)) != f.Size() {
		t.Fatalf("%s: %d of %d bytes, %v", name, len(b), f.Size(), err)
	}
	return string(b)
}

// TestDirs: the system's and the tests' directories behave alike.
func TestDirs(t *testing.T) {
	system, err := disk.OpenOS(t.TempDir() + "/data")
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close() //nolint:errcheck // a test's
	for name, d := range map[string]disk.Dir{"of the system": system, "in memory": disktest.New()} {
		write(t, d, "a", "first", true)
		write(t, d, "b", "second", false)
		if _, err := d.Create("a"); err == nil {
			t.Errorf("%s: a file is created twice", name)
		}
		if err := errors.Join(d.Rename("a", "b"), d.SyncDir()); err != nil {
			t.Error(name, err)
		}
		if names, err := d.List(); err != nil || !slices.Equal(names, []string{"b"}) || read(t, d, "b") != "first" {
			t.Errorf("%s: %v, %v", name, names, err)
		}
		if err := d.Remove("b"); err != nil {
			t.Error(name, err)
		}
		if d.Remove("b") == nil || d.Rename("b", "c") == nil {
			t.Errorf("%s: what is not there is removed or renamed", name)
		}
	}
}

func TestLock(t *testing.T) {
	path := t.TempDir()
	first, err := disk.OpenOS(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.OpenOS(path); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("a second is let in: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := disk.OpenOS(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.OpenExisting(path); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("one that only reads is let in: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenExisting: a directory opened for reading is unchanged, and locked.
func TestOpenExisting(t *testing.T) {
	path := t.TempDir()
	if _, err := disk.OpenExisting(path + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	first, err := disk.OpenExisting(path)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) != 0 {
		t.Errorf("it has made %v, %v", entries, err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second, err := disk.OpenOS(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	reader, err := disk.OpenExisting(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disk.OpenOS(path); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("a server is let in beside it: %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

// TestCrash: synced data survives, other data may.
func TestCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 1000 {
		d := disktest.New()
		write(t, d, "a", "old", true)
		if err := d.SyncDir(); err != nil {
			t.Fatal(err)
		}
		write(t, d, "new", "synced", true)
		write(t, d, "lost", "12", false)
		if err := d.Rename("new", "a"); err != nil {
			t.Fatal(err)
		}
		crashed := d.Crash(rng)
		switch a := read(t, crashed, "a"); a {
		case "old", "synced":
			seen[a] = true
		default:
			t.Fatalf("a file that is replaced is %q", a)
		}
		seen["lost is "+read(t, crashed, "lost")] = true
		if err := d.SyncDir(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, d.Crash(rng), "a"); got != "synced" {
			t.Fatalf("after the directory's sync it is %q", got)
		}
	}
	for _, want := range []string{"old", "synced", "lost is ", "lost is 1", "lost is 12", "lost is 1\x00", "lost is \x00\x00"} {
		if !seen[want] {
			t.Errorf("never seen: %q", want)
		}
	}
}
