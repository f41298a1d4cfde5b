package deploytest

import (
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
	"cellserver/lab/internal/built"
)

const unit = "deploy/systemd/cellserver.service"

// systemd verifies the unit, with this machine's path to the server.
func TestUnit(t *testing.T) {
	processtest.Need(t, "systemd-analyze")
	text := read(t, unit)
	const command = "=/usr/bin/cellserver "
	if !strings.Contains(text, command) {
		t.Fatalf("no%q to replace", command)
	}
	text = strings.ReplaceAll(text, command, "="+built.Server(t)+" ")
	path := write(t, t.TempDir(), "cellserver.service", text)
	if out := run(t, "", "systemd-analyze", "verify", "--man=no", path); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	// In tenths of an exposure from 0 to 10; a unit without hardening has 96.
	run(t, "", "systemd-analyze", "security", "--offline=true", "--threshold=12", path)
}
