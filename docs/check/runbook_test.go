package check

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// TestRunbook: docs/runbook.html, which the server serves, is docs/OPERATIONS.md. With UPDATE_DOCS set, it is
// written.
func TestRunbook(t *testing.T) {
	html := runbook(t, read(t, "docs/OPERATIONS.md"))
	if os.Getenv("UPDATE_DOCS") != "" {
		update(t, "docs/runbook.html", html)
		return
	}
	if read(t, "docs/runbook.html") != html {
		t.Error("docs/runbook.html is older than docs/OPERATIONS.md: UPDATE_DOCS=1 go test -run Runbook ./docs/check")
	}
}

// runbook renders Markdown for the page's style sheet. What scrolls can have the focus.
func runbook(t *testing.T, markdown string) string {
	t.Helper()
	m := goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	source := []byte(markdown)
	document := m.Parser().Parse(text.NewReader(source))
	standAlone(document, source)
	var html bytes.Buffer
	if err := m.Renderer().Render(&html, source, document); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<div class="scroll" tabindex="0"><table>`,
		"</table>", "</table></div>").Replace(html.String())
}

// standAlone replaces links to other documents, which the server does not have, by their names, and drops
// pictures.
func standAlone(document ast.Node, source []byte) {
	var links []*ast.Link
	var pictures []ast.Node
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if to := string(n.Destination); entering && !strings.HasPrefix(to, "#") && !strings.Contains(to, "://") {
				links = append(links, n)
			}
		case *ast.HTMLBlock:
			if entering {
				pictures = append(pictures, n)
			}
		case *ast.RawHTML:
			if entering {
				pictures = append(pictures, n.Parent())
			}
		}
		return ast.WalkContinue, nil
	})
	for _, p := range pictures {
		p.Parent().RemoveChild(p.Parent(), p)
	}
	for _, link := range links {
		parent, to := link.Parent(), string(link.Destination)
		var name strings.Builder
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			name.Write(child.Text(source)) //nolint:staticcheck // names are plain text or code
			parent.InsertBefore(parent, link, child)
		}
		if name.String() != to {
			parent.InsertBefore(parent, link, ast.NewString([]byte(" ("+to+")")))
		}
		parent.RemoveChild(parent, link)
	}
}
