package check

import (
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/test/processtest"
)

// TestTenantsNight runs the commands of docs/LIMITS-FILE.md on the server that they start. With UPDATE_DOCS
// set, it writes their output.
func TestTenantsNight(t *testing.T) {
	processtest.Need(t, "redis-cli", "bash", "sed")
	const document = "docs/LIMITS-FILE.md"
	ran := steady(t, document, func() string { return followNight(t, document, build(t)) })
	if !strings.Contains(ran, " &\n") {
		t.Errorf("%s starts no server", document)
	}
	compareBlocks(t, document, ran)
}

// followNight returns a document's blocks with the output of a new server, which has the file before them.
func followNight(t *testing.T, document, binary string) string {
	t.Helper()
	dir := filepath.Dir(binary)
	var s server
	var ran strings.Builder
	for _, f := range fences(t, document) {
		if f.language == "yaml" {
			write(t, dir, "limits.yml", f.text)
		}
		if f.language != "console" {
			continue
		}
		ran.WriteString("```console\n")
		for _, step := range strings.Split(f.text, "$ ")[1:] {
			command, _, _ := strings.Cut(step, "\n")
			line := "$ " + command + "\n"
			if args, ok := strings.CutSuffix(command, " &"); ok {
				s = start(t, "bash", "-c", "cd "+dir+" && exec "+args)
				ran.WriteString(line)
				continue
			}
			ran.WriteString(line + run(t, dir, "bash", "-c", "exec 2>&1; "+s.ports(command)+"; true")) // exit codes tell of changes
		}
		ran.WriteString("```\n")
	}
	return ran.String()
}
