package zones

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// directory returns a new one that has a zone by a name, Etc/GMT-3's, and other files by name and text.
func directory(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	d := t.TempDir()
	// The shortest file of a zone: RFC 9636, section 4, version 1, of one offset and no transition.
	zone := "TZif" + strings.Repeat("\x00", 16+4*4) + "\x00\x00\x00\x01\x00\x00\x00\x04" + "\x00\x00\x2a\x30\x00\x00" + "+03\x00"
	write(t, filepath.Join(d, name), zone)
	for name, text := range files {
		write(t, filepath.Join(d, name), text)
	}
	return d
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			berlin, err := Load("Europe/Berlin")
			if err != nil {
				t.Error(err)
				return
			}
			if _, offsetSec := time.Unix(1_720_000_000, 0).In(berlin).Zone(); offsetSec != 7200 {
				t.Errorf("summer in Berlin: got an offset of %d s", offsetSec)
			}
		})
	}
	all.Wait()
	if _, err := Load("Europ/Berlin"); err == nil {
		t.Error("an unknown zone: no error")
	}
}

const child = "ZONES_TEST_CHILD"

// TestLoadFromZONEINFO runs itself again: the package time reads the variable once.
func TestLoadFromZONEINFO(t *testing.T) {
	if os.Getenv(child) == "" {
		//nolint:gosec // the command is this test
		again := exec.Command(os.Args[0], "-test.run=^TestLoadFromZONEINFO$")
		again.Env = append(os.Environ(), child+"=1", "ZONEINFO="+directory(t, "Test/Zone", nil))
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	own, err := Load("Test/Zone")
	if err != nil {
		t.Fatal(err)
	}
	if _, offsetSec := time.Unix(0, 0).In(own).Zone(); offsetSec != 10800 {
		t.Errorf("got an offset of %d s", offsetSec)
	}
	if _, err := Load("Europe/Berlin"); err != nil {
		t.Errorf("a zone that the directory lacks: %v", err)
	}
}

func TestUsed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"tzdata.zi", map[string]string{"tzdata.zi": "# version 2031a\n# redo posix_only\n"}, "2031a"},
		{"+VERSION", map[string]string{"+VERSION": "2031b\n"}, "2031b"},
		{"both", map[string]string{"tzdata.zi": "# version 2031a\n", "+VERSION": "2031b\n"}, "2031a"},
		{"neither", nil, "unknown"},
		{"another first line", map[string]string{"tzdata.zi": "# This file\n", "+VERSION": "2031b"}, "2031b"},
		{"an empty file", map[string]string{"+VERSION": ""}, "unknown"},
		{"an odd file", map[string]string{"+VERSION": "20\x1b31b\n"}, "unknown"},
	} {
		t.Setenv("ZONEINFO", directory(t, "Europe/Berlin", tt.files))
		if got := Used(); got != (Source{Version: tt.want}) {
			t.Errorf("%s: got %+v, want version %s", tt.name, got, tt.want)
		}
	}
	zip := filepath.Join(t.TempDir(), "zoneinfo.zip")
	write(t, zip, "")
	t.Setenv("ZONEINFO", zip)
	if got := Used(); got != (Source{Version: "unknown"}) {
		t.Errorf("a zip file: got %+v", got)
	}
}

func TestUsedLooksInOrder(t *testing.T) {
	first, second := directory(t, "Europe/Berlin", map[string]string{"+VERSION": "1"}), directory(t, "Europe/Berlin", map[string]string{"+VERSION": "2"})
	empty, absent := t.TempDir(), filepath.Join(t.TempDir(), "absent.zip")
	for _, tt := range []struct {
		directories []string
		want        Source
	}{
		{[]string{first, second}, Source{Version: "1"}},
		{[]string{absent, empty, second, first}, Source{Version: "2"}},
		{[]string{absent, empty}, Source{Embedded: true, Version: embeddedVersion}},
		{nil, Source{Embedded: true, Version: embeddedVersion}},
	} {
		if got := firstOf(tt.directories); got != tt.want {
			t.Errorf("%v: got %+v, want %+v", tt.directories, got, tt.want)
		}
	}
	if system, named := directories(""), directories(first); named[0] != first || len(named) != len(system)+1 {
		t.Errorf("$ZONEINFO does not come first: %v", named)
	}
}

// TestEmbeddedVersion: a newer Go embeds newer zones, and the constant must say so.
func TestEmbeddedVersion(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "update.bash"))
	if os.IsNotExist(err) {
		t.Skip("this Go has no lib/time/update.bash")
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nDATA=" + embeddedVersion + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("lib/time/update.bash has no line %q: set embeddedVersion to its DATA", strings.TrimSpace(want))
	}
}
