package durability

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/test/killtest"
)

func TestTwoServersOnOneDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	first := harness.StartKeeping(t, dir)
	code, said := harness.RefusedStart(t, "--data-dir", dir)
	waits, ends, _ := strings.Cut(said, "\n")
	if code != 1 || !strings.Contains(waits, "waiting for it to end") || strings.Count(ends, "\n") != 1 || !strings.Contains(ends, dir) || !strings.Contains(ends, "another") {
		t.Errorf("the second server: %d, %q", code, said)
	}
	if err := killtest.Charge(t.Context(), first.Addr, "k"); err != nil {
		t.Error(err)
	}
	first.Stop(t, syscall.SIGKILL)
	harness.StartKeeping(t, dir) // the lock ended with the first
}

// TestDataDirThatIsNone: what stands in the directory's place stays.
func TestDataDirThatIsNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, file) {
			t.Errorf("%s: %d, %q", dir, code, said)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

// Keys of kept's directory: in the snapshot, and in each frame of the log after it.
const (
	savedKey  = "saved"
	loggedKey = "logged:"
	loggedEnd = 4
)

// kept returns the files of a data directory of a server that was killed: a snapshot, and a log with some
// frames.
func kept(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(killtest.Charge(t.Context(), p.Addr, savedKey))
	harness.Exchange(t, p.Dial(t), "SAVE\r\n", "+OK\r\n")
	for i := range loggedEnd {
		must(killtest.Charge(t.Context(), p.Addr, fmt.Sprint(loggedKey, i)))
	}
	p.Stop(t, syscall.SIGKILL)
	return contents(t, dir)
}

// contents returns the files of a directory and of those below, but for the lock.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOCK" {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// write makes a directory of files.
func write(t *testing.T, files map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// newest returns the last file in order whose name begins so.
func newest(t *testing.T, files map[string][]byte, prefix string) (name string) {
	t.Helper()
	for _, n := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(n, prefix) {
			name = n
		}
	}
	if name == "" {
		t.Fatalf("no %s in %v", prefix, slices.Sorted(maps.Keys(files)))
	}
	return name
}

func lacking(files map[string][]byte, name string) map[string][]byte {
	files = maps.Clone(files)
	delete(files, name)
	return files
}

func having(files map[string][]byte, name string, b []byte) map[string][]byte {
	files = maps.Clone(files)
	files[name] = b
	return files
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 4
	return b
}

// TestDamagedFiles: what cannot be read is refused by one line that says what to do, and stays as it is.
// --data-recover goes on with what can be read, and keeps the rest aside.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	files := kept(t)
	log, snapshot := newest(t, files, "log-"), newest(t, files, "snapshot-")
	manifest, l, s := files["MANIFEST"], files[log], files[snapshot]
	swapped := having(having(files, log, s), snapshot, l)
	tests := map[string]struct {
		files map[string][]byte
		keys  []string // that can be recovered
	}{
		"the manifest is cut":           {having(files, "MANIFEST", manifest[:len(manifest)/2]), nil},
		"a bit of the manifest":         {having(files, "MANIFEST", flipped(manifest, len(manifest)/2)), nil},
		"its version has a flipped bit": {having(files, "MANIFEST", bytes.Replace(manifest, []byte("format 7"), []byte("format 5"), 1)), nil},
		"the manifest is empty":         {having(files, "MANIFEST", nil), nil},
		"the manifest is missing":       {lacking(files, "MANIFEST"), nil},
		"the snapshot is cut":           {having(files, snapshot, s[:len(s)-3]), []string{loggedKey + "0", loggedKey + "3"}},
		"a bit of the snapshot":         {having(files, snapshot, flipped(s, len(s)-3)), []string{loggedKey + "0", loggedKey + "3"}},
		"the snapshot is empty":         {having(files, snapshot, nil), []string{loggedKey + "0", loggedKey + "3"}},
		"the snapshot is missing":       {lacking(files, snapshot), []string{loggedKey + "0", loggedKey + "3"}},
		"a bit of the log's first part": {having(files, log, flipped(l, 70)), []string{savedKey}},
		"a bit of the log's header":     {having(files, log, flipped(l, 10)), []string{savedKey}},
		"the log is empty":              {having(files, log, nil), []string{savedKey}},
		"the log is missing":            {lacking(files, log), []string{savedKey}},
		"log and snapshot are swapped":  {swapped, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, tt.files)
			code, said := harness.RefusedStart(t, "--data-dir", dir)
			if code != 1 || !saysWhatToDo(said) {
				t.Errorf("%d, %q", code, said)
			}
			if code, out, errOut := harness.Call(t, nil, "check", dir); code != 1 {
				t.Errorf("check: %d, %q, %q", code, out, errOut)
			}
			if got := contents(t, dir); !maps.EqualFunc(got, tt.files, bytes.Equal) {
				t.Errorf("of %v there are %v", slices.Sorted(maps.Keys(tt.files)), slices.Sorted(maps.Keys(got)))
			}
			if t.Failed() {
				return
			}
			recovers(t, dir, tt.keys)
			for old, b := range tt.files {
				if !bytes.Equal(b, files[old]) && len(b) > 0 && !isAmong(b, contents(t, dir)) {
					t.Errorf("the damaged %s is not kept", old)
				}
			}
		})
	}
}

// saysWhatToDo looks for one line, of the error.
func saysWhatToDo(said string) bool {
	lines := 0
	for line := range strings.Lines(said) {
		if strings.Contains(line, "cellserver check") && strings.Contains(line, "--data-recover") {
			lines++
		}
	}
	return lines == 1
}

func isAmong(b []byte, files map[string][]byte) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(files)), func(f []byte) bool { return bytes.Equal(f, b) })
}

// recovers starts a server with --data-recover, and again without.
func recovers(t *testing.T, dir string, keys []string) {
	t.Helper()
	p := harness.StartKeeping(t, dir, "--data-recover")
	harness.SyncAll(t, p)
	for _, again := range []bool{false, true} {
		if again {
			p.Stop(t, syscall.SIGKILL)
			p = harness.StartKeeping(t, dir)
		}
		if len(keys) == 0 {
			continue
		}
		units, err := killtest.Charged(t.Context(), p.Addr, keys...)
		if err != nil || slices.Contains(units, 0) {
			t.Errorf("recovered, and started again: %t; %q have %d units: %v", again, keys, units, err)
		}
	}
}

// TestTornTail: a write that was under way when the server ended is no damage.
func TestTornTail(t *testing.T) {
	t.Parallel()
	files := kept(t)
	log := newest(t, files, "log-")
	l := files[log]
	for name, tt := range map[string]struct {
		log  []byte
		lost int // frames
	}{
		"whole":                 {l, 0},
		"zeros behind":          {append(bytes.Clone(l), make([]byte, 5000)...), 0},
		"something behind":      {append(bytes.Clone(l), "FRAMsomething"...), 0},
		"the last frame is cut": {l[:len(l)-3], 1},
		"a bit of the last one": {flipped(l, len(l)-3), 1},
		"zeros in the last one": {append(bytes.Clone(l[:len(l)-20]), make([]byte, 20)...), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, having(files, log, tt.log))
			if code, out, errOut := harness.Call(t, nil, "check", dir); code != 0 {
				t.Errorf("check: %d, %q, %q", code, out, errOut)
			}
			p := harness.StartKeeping(t, dir)
			keys := []string{savedKey}
			for i := range loggedEnd {
				keys = append(keys, fmt.Sprint(loggedKey, i))
			}
			units, err := killtest.Charged(t.Context(), p.Addr, keys...)
			want := []int64{1, 1, 1, 1, 1}
			for i := range tt.lost {
				want[loggedEnd-i] = 0
			}
			if err != nil || !slices.Equal(units, want) {
				t.Errorf("%q have %d units, want %d: %v", keys, units, want, err)
			}
		})
	}
}

// summed returns a text with its checksum behind it, as in every format.
func summed(text string) []byte {
	return fmt.Appendf(nil, "%scrc32c %08x\n", text, crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// TestNewerFormat: what a later version wrote is refused with its format, and stays as it is.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	files := kept(t)
	log := newest(t, files, "log-")
	header := append([]byte("CELLSRVRLOG\x00\x08\x00\x00\x00"), files[log][16:24]...)
	header = binary.LittleEndian.AppendUint32(header,
		crc32.Checksum(header, crc32.MakeTable(crc32.Castagnoli)))
	for name, damaged := range map[string]map[string][]byte{
		"log":      having(files, log, append(header, files[log][len(header):]...)),
		"limits":   having(files, "LIMITS", summed("cellserver limits, format 4\n")),
		"manifest": having(files, "MANIFEST", summed("cellserver data, format 8\n")),
		"all":      having(files, "MANIFEST", summed("cellserver data, format 9\nof another kind\n")),
		"manifest and log": having(having(files, "MANIFEST", summed("cellserver data, format 8\n")), log,
			append([]byte("CELLSRVRLOG\x00\x08\x00\x00\x00"), files[log][16:]...)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, damaged)
			refused := regexp.MustCompile(`(?m)^cellserver: --data-dir .*: persist: (MANIFEST|LIMITS|log-\d+) is of format (4|8|9), and this version reads ` +
				`formats up to [1-7]; start the later version that wrote it, or choose another directory\n$`)
			if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 || !refused.MatchString(said) {
				t.Errorf("%d, %q", code, said)
			}
			code, out, errOut := harness.Call(t, nil, "check", dir)
			if code != 1 || strings.Contains(out, "DAMAGED") || strings.Contains(out, "removes") ||
				!strings.Contains(out, "NEWER: ") || !regexp.MustCompile(`^cellserver: check: `+dir+
				` was written by a later version than `+buildinfo.Version+`: \S+ is of format (4|8|9), and this version reads formats up to [1-7]\n$`).MatchString(errOut) {
				t.Errorf("check: %d, %q, %q", code, out, errOut)
			}
			// It is no damage: there is nothing to recover from.
			if code, said := harness.RefusedStart(t, "--data-dir", dir, "--data-recover"); code != 1 ||
				!refused.MatchString(said) {
				t.Errorf("with --data-recover: %d, %q", code, said)
			}
			if got := contents(t, dir); !maps.EqualFunc(got, damaged, bytes.Equal) {
				t.Errorf("the files have changed: %v", slices.Sorted(maps.Keys(got)))
			}
		})
	}
}

// TestReadOnlyDirectory: a directory that cannot be written to is refused by one line.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere; see TestReadOnlyDisk")
	}
	dir := write(t, kept(t))
	if err := os.Chmod(dir, 0o500); err != nil { //nolint:gosec // others may as well read it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) //nolint:gosec // a directory
	if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, dir) {
		t.Errorf("%d, %q", code, said)
	}
}
