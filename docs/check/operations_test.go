package check

import (
	"regexp"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// TestSymptoms: the table that begins OPERATIONS.md leads to every alert, and a server answers its commands.
func TestSymptoms(t *testing.T) {
	processtest.Need(t, "redis-cli", "curl", "bash")
	document := read(t, "docs/OPERATIONS.md")
	_, table, found := strings.Cut(document, "| you see | look here first | then |\n| --- | --- | --- |\n")
	if !found {
		t.Fatal("there is no table of symptoms")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for _, alert := range regexp.MustCompile(`(?m)^## (Cellserver\w+)$`).FindAllStringSubmatch(document, -1) {
		if !strings.Contains(table, "["+alert[1]+"](#"+strings.ToLower(alert[1])+")") {
			t.Errorf("no symptom leads to %s", alert[1])
		}
	}
	binary := build(t)
	s := start(t, binary)
	run(t, t.TempDir(), "redis-cli", "-p", s.redisPort, "cl.limit", "set", "LIMIT", "funnel", "15", "30", "60")
	for row := range strings.Lines(table) {
		commands := code.FindAllString(strings.Split(row, "|")[2], -1)
		if commands == nil {
			t.Errorf("no command: %s", row)
		}
		for _, command := range commands {
			runSymptom(t, binary, s, strings.Trim(command, "`"))
		}
	}
}

// runSymptom runs a command of the table.
func runSymptom(t *testing.T, binary string, s server, line string) {
	t.Helper()
	line = s.ports(line)
	switch name, args, _ := strings.Cut(line, " "); name {
	case "redis-cli", "curl":
	case "cellserver":
		line = binary + " " + args + " --metrics-addr 127.0.0.1:" + s.metricsPort
	case "journalctl": // systemd's
		return
	default:
		t.Errorf("no test runs %s", line)
		return
	}
	if out := run(t, t.TempDir(), "bash", "-c", line); strings.HasPrefix(out, "(error)") {
		t.Errorf("$ %s\n%s", line, out)
	}
}
