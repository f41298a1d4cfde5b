package durability

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// keptLimits returns the files of a server that was killed as soon as it had confirmed a limit and a denied
// key.
func keptLimits(t *testing.T) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	p := harness.StartKeeping(t, dir, "--fsync-interval", "0")
	harness.Charge(t, p, savedKey)
	harness.Exchange(t, p.Dial(t), "CL.LIMIT SET api 4 5 60\r\n", "+OK\r\n")
	harness.Exchange(t, p.Dial(t), "CL.LIMIT OVERRIDE api mallory DENY\r\n", "+OK\r\n")
	p.Stop(t, syscall.SIGKILL)
	return contents(t, dir)
}

// TestLimitsThatAreGone: limits and overrides by commands that are gone are damage, or a denied key would be
// allowed, and --data-recover goes on without them.
func TestLimitsThatAreGone(t *testing.T) {
	t.Parallel()
	files := keptLimits(t)
	if !bytes.HasPrefix(files["MANIFEST"], []byte("cellserver data, format 7\n")) {
		t.Fatalf("the manifest is %q", files["MANIFEST"])
	}
	whole := write(t, files)
	if code, out, errOut := harness.Call(t, nil, "check", whole); code != 0 {
		t.Errorf("check of all: %d, %q, %q", code, out, errOut)
	}
	harness.Exchange(t, harness.StartKeeping(t, whole).Dial(t), "CL.CHECK api mallory\r\n", "*5\r\n:1\r\n:0\r\n:0\r\n:-1\r\n:0\r\n")
	for _, name := range []string{"LIMITS", "OVERRIDES"} {
		dir := write(t, lacking(files, name))
		code, out, errOut := harness.Call(t, nil, "check", dir)
		if code != 1 || !strings.Contains(out, name+"  ") || !strings.Contains(out, "DAMAGED: ") || !strings.Contains(errOut, "is damaged") {
			t.Errorf("check without %s: %d, %q, %q", name, code, out, errOut)
		}
		code, said := harness.RefusedStart(t, "--data-dir", dir)
		if code != 1 || !saysWhatToDo(said) || !strings.Contains(said, name+" is missing") {
			t.Errorf("without %s: %d, %q", name, code, said)
		}
		if code, out, errOut := harness.Call(t, nil, "dump", "--from", dir, "--format", "csv"); code != 0 || !strings.Contains(out, savedKey) {
			t.Errorf("a dump without %s: %d, %q, %q", name, code, out, errOut) // it has none of them anyway
		}
		p := harness.StartKeeping(t, dir, "--data-recover")
		p.Logged(t, name+" is missing")
		p.Stop(t, syscall.SIGKILL)
		harness.Units(t, harness.StartKeeping(t, dir), 1, savedKey)
	}
}

// TestCutRole: a role that is cut is no other one, and check notices it, too.
func TestCutRole(t *testing.T) {
	t.Parallel()
	const role = "cellserver role, format 1\nreplica 127.0.0.1:12345\n"
	files := kept(t)
	for _, cut := range []string{role[:len(role)-1], role[:len(role)-3], role[:strings.Index(role, "\n")+1], ""} {
		dir := write(t, having(files, "ROLE", []byte(cut)))
		code, out, _ := harness.Call(t, nil, "check", dir)
		if code != 1 || !strings.Contains(out, "ROLE  ") || !strings.Contains(out, "DAMAGED: ") {
			t.Errorf("%q: check says %d, %q", cut, code, out)
		}
		if code, said := harness.RefusedStart(t, "--data-dir", dir); code != 1 || strings.Count(said, "ROLE in the data directory is not readable") != 1 {
			t.Errorf("%q: %d, %q", cut, code, said)
		}
	}
}

// TestDroppedEnd: what a start drops of a log is in its log, and check says it; a damaged frame is told apart
// from one that was being written.
func TestDroppedEnd(t *testing.T) {
	t.Parallel()
	files := kept(t)
	log := newest(t, files, "log-")
	l := files[log]
	const unfinished, damaged = "are an unfinished write", "are complete and their checksum is wrong"
	for name, tt := range map[string]struct {
		log  []byte
		says string
	}{
		"whole":                      {l, ""},
		"the last frame is cut":      {l[:len(l)-3], unfinished},
		"zeros in the last one":      {append(bytes.Clone(l[:len(l)-20]), make([]byte, 20)...), unfinished},
		"a bit of the last one":      {flipped(l, len(l)-3), damaged},
		"a bit of its sum":           {flipped(l, bytes.LastIndex(l, []byte("FRAM"))+33), damaged},
		"a bit of its length":        {flipped(l, bytes.LastIndex(l, []byte("FRAM"))+5), damaged},
		"a bit of where it begins":   {flipped(l, bytes.LastIndex(l, []byte("FRAM"))), damaged},
		"a bit of its number":        {flipped(l, bytes.LastIndex(l, []byte("FRAM"))+16), damaged},
		"a bit of the line's number": {flipped(l, bytes.LastIndex(l, []byte("FRAM"))+8), damaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, having(files, log, tt.log))
			code, out, errOut := harness.Call(t, nil, "check", dir)
			if code != 0 || !strings.Contains(out, tt.says) || strings.Contains(out, "drops its end") != (tt.says != "") {
				t.Errorf("check: %d, %q, %q", code, out, errOut)
			}
			p := harness.StartKeeping(t, dir)
			if said := p.Log.String(); !strings.Contains(said, tt.says) || strings.Contains(said, `"file":"`+log+`","from_byte":`) != (tt.says != "") {
				t.Errorf("the log has %s", said)
			}
		})
	}
}

// TestKilledInRecovery: whenever a recovery is killed, there is a manifest as before, the next recovery goes
// on, and the damaged files are kept.
func TestKilledInRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	files := kept(t)
	log := newest(t, files, "log-")
	files[log] = flipped(files[log], 70)
	for kills := 1; ; kills++ {
		dir := write(t, files)
		p := harness.Start(t, harness.Command(t, "--addr", "127.0.0.1:0", "--metrics-addr", "", "--log-format", "json", "--data-dir", dir, "--data-recover"))
		seen, last := 0, ""
		for seen < kills && !p.ReadReady() && !p.HasExited() {
			if now := strings.Join(names(t, dir), " "); now != last {
				seen, last = seen+1, now
			}
		}
		p.Stop(t, syscall.SIGKILL)
		if _, err := os.Stat(filepath.Join(dir, "MANIFEST")); err != nil {
			t.Errorf("after %d changes, %s: %v", seen, last, err)
		}
		again := harness.StartKeeping(t, dir, "--data-recover")
		harness.Units(t, again, 1, savedKey)
		again.Stop(t, syscall.SIGKILL)
		now := contents(t, dir)
		for _, name := range []string{log, "MANIFEST"} {
			if !isAmong(files[name], now) {
				t.Errorf("after %d changes, %s: the damaged %s is not kept: %q", seen, last, name, names(t, dir))
			}
		}
		if t.Failed() || seen < kills {
			return
		}
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
