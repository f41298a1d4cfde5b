package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cellserver/lab/clients/internal/table"
)

const sentinelHead = `
## Following Sentinel

Clients of [a pair](DEPLOY.md#a-second-server) ask the Sentinels of Redis for its leader, and again when it changes.
` + "`make test-clients`" + ` runs these lines while the leader is killed and while ` + "`SENTINEL FAILOVER`" + ` replaces it:
the programs go on without a restart, and a planned change loses no unit of their limits.

No library repeats a call here ([why](#while-no-limiter-answers)). A planned change holds calls for a round trip between
the servers, and at most for a second, or ten round trips if that is more. So timeouts must be longer, and Sentinel names
the new leader about a second later.
`

// sentinelSection returns the page's section with the lines of the programs that follow Sentinel.
func sentinelSection() (string, error) {
	languages := map[string]string{".go": "go", ".py": "python", ".mjs": "js", ".rb": "ruby"}
	section := new(strings.Builder)
	section.WriteString(sentinelHead)
	for _, f := range followers() {
		source, err := os.ReadFile(f.source)
		if err != nil {
			return "", fmt.Errorf("read a program: %w", err)
		}
		snippet, err := table.Snippet(string(source))
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.source, err)
		}
		fmt.Fprintf(section, "\n%s:\n\n```%s\n%s```\n", f.client.name, languages[filepath.Ext(f.source)], snippet)
	}
	return section.String(), nil
}
