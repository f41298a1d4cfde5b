package deploytest

import (
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/processtest"
)

const unit = "deploy/systemd/cellserver.service"

// systemd verifies the unit, with this machine's path to the server.
func TestUnit(t *testing.T) {
	processtest.Need(t, "systemd-analyze", "systemd")
	text := read(t, unit)
	const command = "\nExecStart=/usr/bin/cellserver "
	if !strings.Contains(text, command) {
		t.Fatalf("no%q to replace", command)
	}
	text = strings.Replace(text, command, "\nExecStart="+buildServer(t)+" ", 1)
	path := write(t, t.TempDir(), "cellserver.service", text)
	if out := run(t, "", "systemd-analyze", "verify", "--man=no", path); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	// In tenths of an exposure from 0 to 10; a unit without hardening has 96.
	run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=12", path)
}

func TestUnitSetsFlags(t *testing.T) {
	help := run(t, "", buildServer(t), "--help")
	for _, m := range regexp.MustCompile(`(?m)^Environment=(CELLSERVER_\w+)=`).FindAllStringSubmatch(read(t, unit), -1) {
		if !isFlagVariable(help, m[1]) {
			t.Errorf("%s is not the variable of a flag", m[1])
		}
	}
}

// TestUnitKeepsData: the data directory is the one that systemd makes for the unit, the only one that can be written.
func TestUnitKeepsData(t *testing.T) {
	text := read(t, unit)
	state := regexp.MustCompile(`(?m)^StateDirectory=(\S+)$`).FindStringSubmatch(text)
	if state == nil || !strings.Contains(text, "\nEnvironment=CELLSERVER_DATA_DIR=/var/lib/"+state[1]+"\n") {
		t.Errorf("the data directory is not the state directory %q", state)
	}
}
