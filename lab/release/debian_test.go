package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// firstReply is what the README's first call returns.
const firstReply = "0\n16\n15\n-1\n2\n"

// TestDebianPackage installs, upgrades, removes and purges the package on a Debian that has been booted.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	m := boot(t)
	deb := artifact(t, "cellserver_*_amd64.deb")
	m.copyIn(t, deb, "/new.deb")
	m.copyIn(t, olderVersion(t, deb), "/old.deb")
	before := snapshot(t, m.root)

	m.in(t, "dpkg", "-i", "/old.deb")
	m.running(t)
	if got := m.redis(t, "CL.THROTTLE", "user123", "15", "30", "60"); got != firstReply {
		t.Errorf("the README's first call returns %q", got)
	}
	m.redis(t, "CL.THROTTLE", "long", "15", "1", "86400")
	if got := m.in(t, "systemctl", "is-enabled", "cellserver"); got != "enabled\n" {
		t.Errorf("is-enabled: %q", got)
	}
	if got := m.in(t, "sh", "-c", "stat -c %U /proc/$(systemctl show -P MainPID cellserver)"); got != "cellserver\n" {
		t.Errorf("runs as %q", got)
	}

	// An upgrade restarts the server, which keeps what it knew and how it was configured.
	config := filepath.Join(m.root, "etc/cellserver/cellserver.yaml")
	if err := os.WriteFile(config, []byte(readFile(t, config)+"\nmaxclients: 1234\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := m.in(t, "systemctl", "show", "-P", "InvocationID", "cellserver")
	m.in(t, "dpkg", "--force-confold", "-i", "/new.deb")
	m.running(t)
	if now := m.in(t, "systemctl", "show", "-P", "InvocationID", "cellserver"); now == old {
		t.Error("an upgrade does not restart the server")
	}
	if got := m.redis(t, "EXISTS", "long"); got != "1\n" {
		t.Errorf("after the upgrade EXISTS returns %q", got)
	}

	if got := m.redis(t, "CONFIG", "GET", "maxclients"); got != "maxclients\n1234\n" {
		t.Errorf("after the upgrade the configuration is %q", got)
	}
	m.reloads(t, config)

	// Who has disabled the service finds it disabled after an upgrade.
	m.in(t, "systemctl", "disable", "--now", "cellserver")
	m.in(t, "dpkg", "-i", "/new.deb")
	if got := m.in(t, "sh", "-c", "systemctl is-enabled cellserver; systemctl is-active cellserver; true"); got != "disabled\ninactive\n" {
		t.Errorf("after an upgrade a disabled service is %q", got)
	}
	m.in(t, "systemctl", "enable", "--now", "cellserver")

	m.in(t, "dpkg", "--remove", "cellserver")
	if got := m.in(t, "sh", "-c", "grep -lx cellserver /proc/*/comm; true"); got != "" {
		t.Errorf("after its removal the server runs as %q", got)
	}
	if m.in(t, "find", "/var/lib/cellserver", "-type", "f") == "" {
		t.Error("the removal deletes the state")
	}
	m.in(t, "dpkg", "--purge", "cellserver")
	compare(t, before, snapshot(t, m.root))
}

// reloads expects systemctl reload to fail with a mistake in the config file, which changes nothing, and else
// to have it read.
func (m *machine) reloads(t *testing.T, config string) {
	t.Helper()
	good := readFile(t, config)
	for _, c := range []struct {
		line, want string
		works      bool
	}{{"timeout: 77x", "0", false}, {"timeout: 77", "77", true}} {
		if err := os.WriteFile(config, []byte(good+c.line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := m.command(t, "systemctl", "reload", "cellserver").CombinedOutput()
		if (err == nil) != c.works {
			t.Fatalf("systemctl reload with %s: %v\n%s%s", c.line, err, out, m.journal(t))
		}
		m.process.Eventually(t, "reload", func() bool {
			return m.redis(t, "CONFIG", "GET", "timeout") == "timeout\n"+c.want+"\n"
		})
	}
}

// TestDebianPackageWithoutSystemd installs the package where no service manager runs, as in a container's
// build.
func TestDebianPackageWithoutSystemd(t *testing.T) {
	t.Parallel()
	m := unpack(t)
	m.copyIn(t, artifact(t, "cellserver_*_amd64.deb"), "/new.deb")
	before := snapshot(t, m.root)
	must(t, "chroot", m.root, "dpkg", "-i", "/new.deb")
	if got := must(t, "chroot", m.root, "cellserver", "--version"); !strings.HasPrefix(got, "cellserver ") {
		t.Errorf("cellserver --version: %q", got)
	}
	must(t, "chroot", m.root, "dpkg", "--verify", "cellserver")
	const check = "cellserver config check --config $0 && cellserver config show --config $0 | grep ^data-dir:"
	if got := must(t, "chroot", m.root, "sh", "-c", check, "/etc/cellserver/cellserver.yaml"); !strings.HasPrefix(got, "ok\ndata-dir: /var/lib/cellserver ") {
		t.Errorf("the configuration: %s", got)
	}
	must(t, "chroot", m.root, "dpkg", "--purge", "cellserver")
	compare(t, before, snapshot(t, m.root))
}

// olderVersion returns the same package with a lower version.
func olderVersion(t *testing.T, deb string) (path string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "old")
	must(t, "dpkg-deb", "--raw-extract", deb, dir)
	control := filepath.Join(dir, "DEBIAN", "control")
	text, err := os.ReadFile(control)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "Version: ") {
			lines[i] = "Version: 0.0.1"
		}
	}
	if err := os.WriteFile(control, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	// Its configuration file is another, so that dpkg has to choose between the new one and the
	// administrator's.
	config := filepath.Join(dir, "etc/cellserver/cellserver.yaml")
	if err := os.WriteFile(config, []byte(readFile(t, config)+"# of an older version\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "dpkg-deb", "--root-owner-group", "--build", "-Znone", dir, dir+".deb")
	return dir + ".deb"
}

// snapshot returns what is in a root: names, modes, owners and contents. What the system and dpkg keep as
// their own records, such as logs, is left out.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	skip := []string{"/dev", "/proc", "/run", "/sys", "/tmp", "/var/cache", "/var/lib/dpkg", "/var/log", "/var/tmp", "/var/lib/systemd/random-seed"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		// The tools that edit /etc/passwd leave a copy and a lock.
		if slices.Contains(skip, name) || strings.HasPrefix(name, "/etc/") && (strings.HasSuffix(name, "-") || strings.HasSuffix(name, ".lock")) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[name] += fmt.Sprintf(" %d bytes %x", len(content), sha256.Sum256(bytes.TrimSpace(content)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func compare(t *testing.T, before, after map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			t.Errorf("%s was %q and is %q", name, before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

// needRoot skips the test where what it does with file systems is not allowed.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		processtest.SkipWithout(t, "root, for mounts and users")
	}
}
