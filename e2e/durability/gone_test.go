//go:build unix

package durability

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/killtest"
)

func do(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// removeFiles removes the files of a directory whose names begin so.
func removeFiles(t *testing.T, dir, prefix string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("there is no %s: %v", prefix, err)
	}
	for _, file := range found {
		do(t, os.Remove(file))
	}
}

// goneDir breaks a data directory, and repairs it; nil where the server does that by itself.
type goneDir struct {
	happens, back func(t *testing.T, dir string)
}

func goneDirs() map[string]goneDir {
	mkdir := func(t *testing.T, dir string) { do(t, os.Mkdir(dir, 0o700)) }
	move := func(t *testing.T, dir string) { do(t, os.Rename(dir, dir+".away")) }
	return map[string]goneDir{
		"removed":    {func(t *testing.T, dir string) { do(t, os.RemoveAll(dir)) }, mkdir},
		"moved":      {move, mkdir},
		"moved back": {move, func(t *testing.T, dir string) { do(t, os.Rename(dir+".away", dir)) }},
		"linked": {move, func(t *testing.T, dir string) {
			mkdir(t, dir+".new")
			do(t, os.Symlink(dir+".new", dir))
		}},
		"copied": {move, func(t *testing.T, dir string) {
			do(t, os.CopyFS(dir+".copy", os.DirFS(dir+".away")), os.Rename(dir+".copy", dir))
		}},
		"a file in its place": {func(t *testing.T, dir string) { move(t, dir); do(t, os.WriteFile(dir, nil, 0o600)) },
			func(t *testing.T, dir string) { do(t, os.Remove(dir)); mkdir(t, dir) }},
		"empty":       {func(t *testing.T, dir string) { removeFiles(t, dir, "") }, nil},
		"no LOCK":     {func(t *testing.T, dir string) { removeFiles(t, dir, "LOCK") }, nil},
		"no MANIFEST": {func(t *testing.T, dir string) { removeFiles(t, dir, "MANIFEST") }, nil},
		"no log":      {func(t *testing.T, dir string) { removeFiles(t, dir, "log-") }, nil},
		"no snapshot": {func(t *testing.T, dir string) { removeFiles(t, dir, "snapshot-") }, nil},
		"no limits":   {func(t *testing.T, dir string) { removeFiles(t, dir, "LIMITS") }, nil},
	}
}

// TestDataDirIsGone: it is noticed, nothing is confirmed that is not kept, and when it is there again the
// server writes all that it knows, by itself.
func TestDataDirIsGone(t *testing.T) {
	t.Parallel()
	for _, interval := range []string{"50ms", "0"} {
		for name, gone := range goneDirs() {
			t.Run(name+", "+interval, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "data")
				p := harness.StartKeeping(t, dir, "--fsync-interval", interval)
				harness.Charge(t, p, "before")
				harness.Exchange(t, p.Dial(t), "CL.LIMIT SET login 4 5 60\r\nSAVE\r\n", "+OK\r\n+OK\r\n")
				harness.Charge(t, p, "logged")
				harness.SyncAll(t, p)
				gone.happens(t, dir)
				during := int64(0)
				if gone.back != nil {
					p.AwaitFault(t, 1)
					p.Logged(t, "put the directory back, or create it")
					err := killtest.Charge(t.Context(), p.Addr, "during")
					if interval != "0" {
						during = 1
					}
					const misconf = "MISCONF the data directory cannot be written"
					refused := err != nil && strings.HasPrefix(err.Error(), misconf)
					if refused != (during == 0) {
						t.Errorf("a call meanwhile: %v", err)
					}
					if info, err := os.Stat(dir); err == nil && info.IsDir() {
						t.Error("the server has made a directory")
					}
					gone.back(t, dir)
				}
				p.Eventually(t, "notice it, and mend it", func() bool {
					return p.Metric(t, "cellserver_persistence_disk_faults_total") > 0 &&
						p.Metric(t, "cellserver_persistence_disk_fault") == 0
				})
				harness.Charge(t, p, "after")
				harness.SyncAll(t, p)
				p.Stop(t, syscall.SIGKILL)
				p = harness.StartKeeping(t, dir)
				harness.Units(t, p, 1, "before", "logged", "after")
				harness.Units(t, p, during, "during")
				harness.Exchange(t, p.Dial(t), "CL.LIMIT DEL login\r\n", ":1\r\n")
			})
		}
	}
}

// TestDataDirIsGoneAtTheEnd: a server whose directory is gone, noticed or not, does not end as if all were
// kept.
func TestDataDirIsGoneAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, interval := range []string{"1h", "0"} {
		for _, noticed := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "data")
			p := harness.StartKeeping(t, dir, "--fsync-interval", interval)
			harness.Charge(t, p, "k")
			do(t, os.RemoveAll(dir))
			if noticed {
				p.AwaitFault(t, 1)
			}
			if code := p.Stop(t, syscall.SIGTERM); code != 1 {
				t.Errorf("interval %s, noticed %t: it ended with %d", interval, noticed, code)
			}
			p.Logged(t, "the latest changes are not on the disk")
			if _, err := os.Stat(dir); err == nil {
				t.Error("the server has made a directory")
			}
		}
	}
}

// TestTwoServersOnAMovedDirectory: a server never writes to a directory that another has in use, or has
// written, and whose path was its own; without its file LOCK a directory lets nobody in.
func TestTwoServersOnAMovedDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	harness.Charge(t, first, "first")
	do(t, os.Remove(filepath.Join(dir, "LOCK")))
	if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 ||
		!strings.Contains(said, "another process uses") {
		t.Errorf("a second server without LOCK: %d, %q", code, said)
	}
	first.Eventually(t, "make LOCK again", func() bool {
		_, err := os.Stat(filepath.Join(dir, "LOCK"))
		return err == nil
	})
	first.AwaitFault(t, 0)
	do(t, os.Rename(dir, dir+".away"))
	second := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	harness.Charge(t, second, "second")
	before := everything(t, dir)
	says := func(want string) {
		t.Helper()
		first.Eventually(t, "say "+want, func() bool {
			info := harness.SayTo(t, first.Dial(t), "INFO persistence\r\nPING\r\n", "+PONG\r\n")
			return strings.Contains(info, want)
		})
		if err := killtest.Charge(t.Context(), first.Addr, "first"); err == nil ||
			!strings.HasPrefix(err.Error(), "MISCONF ") {
			t.Errorf("a call meanwhile: %v", err)
		}
	}
	says("another process uses the directory")
	second.Stop(t, syscall.SIGKILL)
	says("replaced by one with other data")
	if now := everything(t, dir); !maps.Equal(now, before) {
		t.Errorf("the other's files were\n%.2000q, and are\n%.2000q", before, now)
	}
	second = harness.StartKeeping(t, dir, "--fsync-interval", "0")
	harness.Units(t, second, 1, "second")
	harness.Units(t, second, 0, "first")
	if code := first.Stop(t, syscall.SIGTERM); code != 1 {
		t.Errorf("the first ended with %d", code)
	}
	harness.Units(t, harness.StartKeeping(t, dir+".away"), 1, "first")
}

// everything returns the files of a directory with what is in them, but for a mark in LOCK, which each start
// changes.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// TestKilledWhileTheDirReturns: whenever a server is killed while it writes to a directory that was gone, the
// next one starts there, and has what was confirmed since.
func TestKilledWhileTheDirReturns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for round := range 8 {
		p, key := harness.StartKeeping(t, dir, "--fsync-interval", "0"), fmt.Sprint("key:", round)
		harness.Charge(t, p, harness.ManyKeys(fmt.Sprint("many:", round))...)
		do(t, os.RemoveAll(dir))
		p.AwaitFault(t, 1)
		do(t, os.Mkdir(dir, 0o700))
		confirmed := int64(round % 2)
		if confirmed > 0 {
			p.Eventually(t, "confirm a call", func() bool {
				return killtest.Charge(t.Context(), p.Addr, key) == nil
			})
		} else {
			p.Eventually(t, "begin to write", func() bool {
				entries, err := os.ReadDir(dir)
				return err == nil && len(entries) > round/2
			})
		}
		p.Stop(t, syscall.SIGKILL)
		p = harness.StartKeeping(t, dir, "--fsync-interval", "0")
		harness.Units(t, p, confirmed, key)
		p.Stop(t, syscall.SIGKILL)
	}
}
