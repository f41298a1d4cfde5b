package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// machine is a Debian of its own, in a directory.
type machine struct {
	root    string
	process *processtest.Process // of one that has been booted: systemd-nspawn
	leader  int                  // the process ID of its init
}

// unpack returns a new Debian from the archive that scripts/deps.sh makes.
func unpack(t *testing.T) *machine {
	t.Helper()
	needRoot(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(cache, "cellserver", "debian-12.tar")
	if _, err := os.Stat(archive); err != nil {
		processtest.SkipWithout(t, archive)
	}
	m := &machine{root: filepath.Join(t.TempDir(), "root")}
	if err := os.Mkdir(m.root, 0o755); err != nil {
		t.Fatal(err)
	}
	must(t, "tar", "-C", m.root, "-xf", archive)
	return m
}

// boot starts systemd in a new Debian without a network but loopback.
func boot(t *testing.T) *machine {
	t.Helper()
	processtest.Need(t, "systemd-nspawn")
	m := unpack(t)
	// In its own mount namespace cgroups are those of version 2 alone, whatever this machine has, and in one
	// of them runs everything that is started here.
	name := "cellserver-test-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(filepath.Dir(m.root))
	const mount = `umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && `
	const start = mount + `mkdir /sys/fs/cgroup/$0 && echo $$ > /sys/fs/cgroup/$0/cgroup.procs && exec "$@"`
	t.Cleanup(func() {
		must(t, "unshare", "--mount", "sh", "-c", mount+`find /sys/fs/cgroup/$0 -depth -type d -exec rmdir {} +`, name)
	})
	m.process = processtest.Start(t, processtest.Command(t, "unshare", "--mount", "sh", "-c", start, name,
		"systemd-nspawn", "--quiet", "--directory="+m.root, "--machine=cellserver-test", "--boot", "--register=no", "--keep-unit", "--private-network",
		"--console=pipe"))
	p := m.process
	p.Eventually(t, "start an init", func() bool {
		m.leader = initOf(p.Cmd.Process.Pid)
		return m.leader != 0 || p.HasExited()
	})
	p.Eventually(t, "boot", func() bool {
		out, _ := m.command(t, "systemctl", "is-system-running").Output()
		state := strings.TrimSpace(string(out))
		return state == "running" || state == "degraded" || p.HasExited()
	})
	if p.HasExited() {
		t.Fatal(p.Log.String())
	}
	m.in(t, "systemctl", "stop", "*.timer") // of which one may change files at any time of the day
	return m
}

// initOf returns the descendant of a process that is number 1 in its namespace, or 0.
func initOf(pid int) int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, field := range strings.Fields(string(children)) {
		child, _ := strconv.Atoi(field)
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", child))
		for line := range strings.Lines(string(status)) {
			ids := strings.Fields(line)
			if len(ids) > 2 && ids[0] == "NSpid:" && ids[len(ids)-1] == "1" {
				return child
			}
		}
		if found := initOf(child); found != 0 {
			return found
		}
	}
	return 0
}

// command returns a command inside of a booted machine.
func (m *machine) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	inside := []string{"--target", strconv.Itoa(m.leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd", "--"}
	cmd := processtest.Command(t, "nsenter", append(inside, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	return cmd
}

// in returns the output of a command inside of a booted machine, and fails the test if the command fails.
func (m *machine) in(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.command(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (m *machine) copyIn(t *testing.T, from, to string) {
	t.Helper()
	if err := copyFile(from, filepath.Join(m.root, to)); err != nil {
		t.Fatal(err)
	}
}

// running fails the test unless the service is ready and answers.
func (m *machine) running(t *testing.T) {
	t.Helper()
	out, err := m.command(t, "systemctl", "is-active", "cellserver").CombinedOutput()
	if err != nil {
		t.Fatalf("the service is %s%s", out, m.journal(t))
	}
	m.redis(t, "PING")
}

// journal returns what the service has logged.
func (m *machine) journal(t *testing.T) string {
	t.Helper()
	log, _ := m.command(t, "journalctl", "--no-pager", "--unit=cellserver").CombinedOutput()
	return string(log)
}

// redis calls the server with this machine's redis-cli.
func (m *machine) redis(t *testing.T, args ...string) string {
	t.Helper()
	cli := processtest.Need(t, "redis-cli")
	return must(t, "nsenter", append([]string{"--target", strconv.Itoa(m.leader), "--net", "--", cli, "-e", "-p", "6380"}, args...)...)
}
