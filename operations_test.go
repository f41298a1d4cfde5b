package cellserver_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestSymptoms: the table that begins OPERATIONS.md leads to every alert, and a server answers its commands.
func TestSymptoms(t *testing.T) {
	need(t, "redis-cli", "curl", "bash")
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
	for row := range strings.Lines(table) {
		command := regexp.MustCompile("^\\| [^|]+ \\| `([^`]+)`").FindStringSubmatch(row)
		if command == nil {
			t.Errorf("no command: %s", row)
			continue
		}
		line := s.ports(command[1])
		switch name, args, _ := strings.Cut(line, " "); name {
		case "redis-cli", "curl":
		case "cellserver":
			line = binary + " " + args + " --metrics-addr 127.0.0.1:" + s.metricsPort
		case "journalctl": // systemd's
			continue
		default:
			t.Errorf("no test runs %s", line)
			continue
		}
		if out := run(t, t.TempDir(), "bash", "-c", line); strings.HasPrefix(out, "(error)") {
			t.Errorf("$ %s\n%s", line, out)
		}
	}
}
