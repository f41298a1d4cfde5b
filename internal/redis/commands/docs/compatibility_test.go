package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"cellserver/internal/wire/catalog"
)

const (
	compatibilityFile = "../../../../docs/COMPATIBILITY.md"
	tableBegins       = "<!-- The table is generated from the catalog: UPDATE_DOCS=1 go test ./internal/redis/commands/docs -->\n"
	tableEnds         = "<!-- End of the table. -->\n"
	remoteBegins      = "<!-- The table of the remote store is generated from the catalog, too. -->\n"
	remoteEnds        = "<!-- End of the table of the remote store. -->\n"
)

// TestCompatibilityTable compares the document with the catalog. With UPDATE_DOCS set, it rewrites the
// document's table.
func TestCompatibilityTable(t *testing.T) {
	text, err := os.ReadFile(compatibilityFile)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), tableBegins, tableEnds, compatibilityTable())
	want = between(t, want, remoteBegins, remoteEnds, remoteTable())
	if want == string(text) {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Error("docs/COMPATIBILITY.md is not what the catalog says: UPDATE_DOCS=1 go test ./internal/redis/commands/docs")
		return
	}
	if err := os.WriteFile(compatibilityFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// between replaces the text between two marks.
func between(t *testing.T, text, begins, ends, table string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, begins)
	_, after, ended := strings.Cut(rest, ends)
	if !ok || !ended {
		t.Fatal("the marks of a table are gone")
	}
	return before + begins + table + ends + after
}

func remoteTable() string {
	var b strings.Builder
	b.WriteString("\n| Command | Over a remote store |\n| --- | --- |\n")
	cat := catalog.New()
	for _, r := range catalog.RemoteRows() {
		text := r.Differs
		if r.Refusal != "" {
			text = "Refused: " + r.Refusal + "."
		}
		name := strings.ToUpper(strings.ReplaceAll(cat.LookupFull([]byte(r.Name)).FullName(), "|", " "))
		fmt.Fprintf(&b, "| %s | %s |\n", name, strings.ReplaceAll(text, "|", `\|`))
	}
	b.WriteString("\n")
	return b.String()
}

func compatibilityTable() string {
	var b strings.Builder
	b.WriteString("\n| Command | What it does here | How it differs from Redis |\n| --- | --- | --- |\n")
	catalog.New().Each(func(c *catalog.Command) {
		if c.Subs == nil && c.Name != "help" {
			line(&b, c.FullName(), c.Summary, c.Differs)
		}
	})
	b.WriteString("\nEvery command with subcommands has HELP, too.\n\n| Refused | Why |\n| --- | --- |\n")
	refusals(&b)
	b.WriteString("\n")
	return b.String()
}

// refusals writes a line for each reason.
func refusals(b *strings.Builder) {
	var reasons []string
	names := map[string][]string{}
	for _, c := range catalog.Rows() {
		if c.Refusal == "" {
			continue
		}
		if names[c.Refusal] == nil {
			reasons = append(reasons, c.Refusal)
		}
		names[c.Refusal] = append(names[c.Refusal], strings.ToUpper(c.Name))
	}
	for _, reason := range reasons {
		fmt.Fprintf(b, "| %s | %s |\n", strings.Join(names[reason], ", "), reason)
	}
}

func line(b *strings.Builder, name, summary, differs string) {
	escape := strings.NewReplacer("|", `\|`)
	name = strings.ToUpper(strings.ReplaceAll(name, "|", " "))
	fmt.Fprintf(b, "| %s | %s. | %s |\n", name, escape.Replace(summary), escape.Replace(differs))
}
