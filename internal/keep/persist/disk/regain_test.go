//go:build unix

package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// errRefused is what a test's accept returns.
var errRefused = errors.New("refused")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newUsed returns a directory with two files, one incomplete.
func newUsed(t *testing.T) (d *OS, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	d, err := OpenOS(path)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	for _, name := range []string{"whole", "growing"} {
		f, err := d.Create(name)
		must(t, err)
		_, err = io.WriteString(f, "text")
		must(t, err)
		if name == "whole" {
			must(t, f.Close())
		} else {
			t.Cleanup(func() { _ = f.Close() })
			_, err = io.WriteString(f, " and more")
			must(t, err)
		}
	}
	must(t, d.Check("whole", "growing", "never seen"))
	return d, path
}

// lockedBy locks a file like another process.
func lockedBy(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	must(t, err)
	must(t, lockOnce(f))
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func lockOnce(f *os.File) error {
	_, err := tryLock(f)
	return err
}

// goneCase is a change of a directory in use, and Regain's response.
type goneCase struct {
	name    string
	happens func(t *testing.T, path string)
	isOther bool
	asked   int   // how often accept is
	err     error // while it stays like that
}

func goneCases() []goneCase {
	move := func(t *testing.T, path string) { must(t, os.Rename(path, path+".old")) }
	return []goneCase{
		{"removed", func(t *testing.T, path string) { must(t, os.RemoveAll(path)) }, false, 0, ErrGone},
		{"moved", move, false, 0, ErrGone},
		{"replaced by an empty one", func(t *testing.T, path string) { move(t, path); must(t, os.Mkdir(path, 0o700)) }, true, 2, nil},
		{"removed and made again", func(t *testing.T, path string) { must(t, os.RemoveAll(path)); must(t, os.Mkdir(path, 0o700)) }, true, 2, nil},
		{"replaced by a file", func(t *testing.T, path string) { move(t, path); must(t, os.WriteFile(path, nil, 0o600)) }, false, 0, errors.ErrUnsupported},
		{"replaced by one with an old lock", func(t *testing.T, path string) {
			move(t, path)
			must(t, os.Mkdir(path, 0o700))
			must(t, os.WriteFile(filepath.Join(path, lockName), []byte("another's"), 0o600))
		}, true, 1, nil},
		{"replaced by its copy", func(t *testing.T, path string) {
			move(t, path)
			must(t, os.CopyFS(path, os.DirFS(path+".old")))
		}, true, 0, nil},
		{"replaced by one in use", func(t *testing.T, path string) {
			move(t, path)
			other, err := OpenOS(path)
			must(t, err)
			t.Cleanup(func() { _ = other.Close() })
		}, false, 0, ErrInUse},
		{"replaced by a link to another", func(t *testing.T, path string) {
			move(t, path)
			must(t, os.Mkdir(path+".new", 0o700))
			must(t, os.Symlink(path+".new", path))
		}, true, 2, nil},
		{"the lock removed", func(t *testing.T, path string) { must(t, os.Remove(filepath.Join(path, lockName))) }, false, 2, nil},
		{"the lock replaced", func(t *testing.T, path string) {
			must(t, os.Remove(filepath.Join(path, lockName)))
			must(t, os.WriteFile(filepath.Join(path, lockName), nil, 0o600))
		}, false, 1, nil},
		{"the lock replaced by one in use", func(t *testing.T, path string) {
			must(t, os.Remove(filepath.Join(path, lockName)))
			lockedBy(t, filepath.Join(path, lockName))
		}, false, 0, ErrInUse},
	}
}

// TestRegain: every change of a directory in use is noticed, its replacement is not written before it is
// locked and accepted, and then used like the first.
func TestRegain(t *testing.T) {
	for _, tt := range goneCases() {
		t.Run(tt.name, func(t *testing.T) {
			d, path := newUsed(t)
			tt.happens(t, path)
			for range 2 {
				if err := d.Check(); err == nil {
					t.Fatal("it is not noticed")
				}
				if _, err := d.Create("new"); err == nil || d.Remove("whole") == nil ||
					d.Rename("whole", "other") == nil {
					t.Error("it is written to")
				}
				if tt.asked > 0 { // a refused one is unchanged and unlocked
					before := list(t, path)
					_, err := d.Regain(func(Dir, bool) error { return errRefused })
					if !errors.Is(err, errRefused) || list(t, path) != before {
						t.Errorf("refused: %v, and there is %q instead of %q", err, list(t, path), before)
					}
				}
			}
			asked := 0
			isOther, err := d.Regain(func(there Dir, isOther bool) error {
				asked++
				if names, err := there.List(); err != nil || isOther != tt.isOther ||
					isOther && len(names) > 0 {
					t.Errorf("asked of %q, %t: %v", names, isOther, err)
				}
				return nil
			})
			if isOther != tt.isOther || asked != tt.asked || (err != nil) != (tt.err != nil) ||
				errors.Is(tt.err, ErrGone) != errors.Is(err, ErrGone) ||
				errors.Is(tt.err, ErrInUse) != errors.Is(err, ErrInUse) {
				t.Fatalf("regained %t, asked %d times, %v", isOther, asked, err)
			}
			if tt.err != nil {
				return
			}
			must(t, d.Check())
			f, err := d.Create("new")
			must(t, err)
			must(t, f.Close())
			if _, err := os.Stat(filepath.Join(path, "new")); err != nil {
				t.Error(err)
			}
			if _, err := OpenOS(path); !errors.Is(err, ErrInUse) {
				t.Errorf("another is let in: %v", err)
			}
		})
	}
}

// list returns a directory's files by name.
func list(t *testing.T, path string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	must(t, err)
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(path, e.Name()))
		all += e.Name() + ":" + string(b) + " "
	}
	return all
}

// TestFilesThatAreGone: removed and replaced files are noticed; a growing one is fine.
func TestFilesThatAreGone(t *testing.T) {
	for name, happens := range map[string]func(file string) error{
		"removed": os.Remove,
		"exchanged": func(file string) error {
			return errors.Join(os.Remove(file), os.WriteFile(file, []byte("other text"), 0o600))
		},
		"longer": func(file string) error { return os.WriteFile(file, []byte("longer text"), 0o600) },
		"moved":  func(file string) error { return os.Rename(file, file+".old") },
	} {
		for _, file := range []string{"whole", "growing"} {
			d, path := newUsed(t)
			must(t, happens(filepath.Join(path, file)))
			mayBe := name == "longer" && file == "growing"
			if noticed := errors.Is(d.Check("whole", "growing"), ErrGone); noticed == mayBe {
				t.Errorf("%s, %s: noticed %t", name, file, noticed)
			}
			must(t, d.Check("never seen"))
		}
	}
}

// TestLockOfTheDirectory: without LOCK, the directory's own lock keeps others out.
func TestLockOfTheDirectory(t *testing.T) {
	d, path := newUsed(t)
	must(t, os.Remove(filepath.Join(path, lockName)))
	if _, err := OpenOS(path); !errors.Is(err, ErrInUse) {
		t.Errorf("a second is let in: %v", err)
	}
	if _, err := OpenExisting(path); !errors.Is(err, ErrInUse) {
		t.Errorf("one that only reads is let in: %v", err)
	}
	must(t, d.Close())
	second, err := OpenOS(path)
	must(t, err)
	must(t, second.Close())
}

// TestMovedBack: a directory that is put back is the one that it was.
func TestMovedBack(t *testing.T) {
	d, path := newUsed(t)
	must(t, os.Rename(path, path+".away"))
	if err := d.Check(); !errors.Is(err, ErrGone) {
		t.Errorf("away: %v", err)
	}
	must(t, os.Rename(path+".away", path))
	must(t, d.Check("whole", "growing"))
	if isOther, err := d.Regain(func(Dir, bool) error { return errRefused }); isOther || err != nil {
		t.Errorf("it is another: %t, %v", isOther, err)
	}
}

// TestRenamedWhileItIsWritten: a file that grows after its renaming is still the same.
func TestRenamedWhileItIsWritten(t *testing.T) {
	d, _ := newUsed(t)
	f, err := d.Create("new")
	must(t, err)
	must(t, d.Rename("new", "log"))
	_, err = f.Write([]byte("more"))
	must(t, errors.Join(err, d.Check("log"), f.Close()))
}
