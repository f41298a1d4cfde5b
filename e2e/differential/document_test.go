package differential

import (
	"os"
	"strings"
	"testing"
)

const (
	compatibilityFile = "../../docs/COMPATIBILITY.md"
	exceptionsBegin   = "<!-- The list is generated from the test's: UPDATE_DOCS=1 go test -run Exceptions ./e2e/differential -->\n"
	exceptionsEnd     = "<!-- End of the list. -->\n"
)

// TestExceptionsAreDocumented compares the document with TestCommandsAsRedis's exceptions. With UPDATE_DOCS
// set, it updates the list.
func TestExceptionsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(compatibilityFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), exceptionsBegin)
	_, after, ended := strings.Cut(rest, exceptionsEnd)
	if !ok || !ended {
		t.Fatal("the marks of the list are gone")
	}
	var list strings.Builder
	list.WriteString("\n| What may differ | Why |\n| --- | --- |\n")
	for _, e := range exceptions(nil) {
		list.WriteString("| " + e.what + " | " + e.why + " |\n")
	}
	list.WriteString("\n")
	want := before + exceptionsBegin + list.String() + exceptionsEnd + after
	if want == string(text) {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Fatal("docs/COMPATIBILITY.md does not have the exceptions: UPDATE_DOCS=1 go test -run Exceptions ./e2e/differential")
	}
	if err := os.WriteFile(compatibilityFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
