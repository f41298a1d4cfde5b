package dashboard

import (
	"net/http"
	"strings"

	g "maragu.dev/gomponents"
)

func (p *Page) serveRunbook(v *view, _ *http.Request) (body []byte, err error) {
	home, title := "/", "cellserver runbook"
	if lang := v.query.Get("lang"); lang != "" {
		home = "/?lang=" + v.t.Lang[:2]
	}
	html, err := render(g.Group{g.Raw("<!doctype html>"), el("html", attr("lang", "en"),
		el("head",
			el("meta", attr("charset", "utf-8")),
			el("meta", attr("name", "viewport"), attr("content", "width=device-width, initial-scale=1")),
			el("meta", attr("name", "color-scheme"), attr("content", "light dark")),
			el("title", text(title)),
			el("link", attr("rel", "icon"), attr("href", icon)),
			el("style", g.Raw(style())),
		),
		el("body", class("runbook"),
			el("header", el("a", attr("href", home), attr("lang", v.t.Lang), text(v.t.BackToPage))),
			el("main", id("main"), g.Raw(string(p.runbook)))),
	)})
	return []byte(html), err
}

// renderRunbook returns the HTML of a document in the Markdown of docs/: headings, paragraphs, lists, code,
// tables and links. What it does not know stays as it is written.
func renderRunbook(markdown string) []byte {
	var r markdownReader
	for _, line := range strings.Split(markdown, "\n") {
		r.read(line)
	}
	r.endBlock()
	r.endSection()
	html, _ := render(g.Group(r.sections)) // a strings.Builder does not fail
	return []byte(html)
}

// markdownReader gathers lines of a block, blocks of a section, and sections.
type markdownReader struct {
	sections []g.Node
	anchor   string
	blocks   []g.Node
	kind     blockKind
	lines    []string
}

type blockKind uint8

const (
	paragraph blockKind = iota
	bullets
	numbers
	indented // code
	fenced   // code between two lines of ```
	tabular
)

func (r *markdownReader) read(line string) {
	isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
	switch content := strings.TrimLeft(line, "#"); {
	case r.kind == fenced && !isFence:
		r.lines = append(r.lines, line)
	case r.kind == fenced:
		r.endBlock()
	case isFence:
		r.begin(fenced)
	case line == "":
		if r.kind != bullets && r.kind != numbers && r.kind != indented {
			r.endBlock()
		} else {
			r.lines = append(r.lines, "")
		}
	case len(content) < len(line) && strings.HasPrefix(content, " "):
		r.heading(len(line)-len(content), strings.TrimSpace(content))
	case strings.HasPrefix(line, "|"):
		r.add(tabular, line)
	case strings.HasPrefix(line, "- "):
		r.add(bullets, line)
	case isNumbered(line):
		r.add(numbers, line)
	case strings.HasPrefix(line, "    ") && (len(r.lines) == 0 || r.kind == indented):
		r.add(indented, line[4:])
	case strings.HasPrefix(line, " ") && len(r.lines) > 0:
		r.lines = append(r.lines, line)
	default:
		r.add(paragraph, line)
	}
}

func isNumbered(line string) bool {
	number, _, ok := strings.Cut(line, ". ")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func (r *markdownReader) begin(kind blockKind) {
	r.endBlock()
	r.kind = kind
}

// add adds a line to a block of this kind, which it begins unless it continues the last one.
func (r *markdownReader) add(kind blockKind, line string) {
	if r.kind != kind || kind == paragraph && len(r.lines) == 0 {
		r.begin(kind)
	}
	r.lines = append(r.lines, line)
}

// heading begins a section, whose anchor is as on GitHub.
func (r *markdownReader) heading(level int, title string) {
	r.endBlock()
	r.endSection()
	r.anchor = anchorOf(title)
	name := "h" + string(rune('0'+min(level, 4)))
	r.blocks = append(r.blocks, el(name, inline(title)))
}

// anchorOf lowers letters, makes dashes of spaces and drops punctuation.
func anchorOf(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			return c
		}
		return -1
	}, strings.ToLower(title))
}

func (r *markdownReader) endSection() {
	if len(r.blocks) > 0 {
		r.sections = append(r.sections, el("section", id(r.anchor), g.Group(r.blocks)))
	}
	r.blocks = nil
}

func (r *markdownReader) endBlock() {
	lines, kind := r.lines, r.kind
	r.lines, r.kind = nil, paragraph
	if len(lines) == 0 {
		return
	}
	r.blocks = append(r.blocks, blockNode(kind, lines))
}

func blockNode(kind blockKind, lines []string) g.Node {
	switch kind {
	case indented, fenced:
		return el("pre", attr("tabindex", "0"), el("code", text(strings.TrimRight(strings.Join(lines, "\n"), "\n"))))
	case bullets:
		return el("ul", items(lines))
	case numbers:
		return el("ol", items(lines))
	case tabular:
		return tableNode(lines)
	case paragraph:
	}
	return el("p", inline(strings.Join(strings.Fields(strings.Join(lines, " ")), " ")))
}

// items returns a list's entries. What follows the first lines of an entry is indented, and read like a
// document.
func items(lines []string) g.Node {
	var all g.Group
	for start, i := 0, 1; i <= len(lines); i++ {
		if i < len(lines) && (lines[i] == "" || lines[i][0] == ' ') {
			continue
		}
		_, first, _ := strings.Cut(lines[start], " ")
		entry := markdownReader{lines: []string{first}}
		indent := len(lines[start]) - len(first)
		for _, line := range lines[start+1 : i] {
			entry.read(line[min(indent, len(line)-len(strings.TrimLeft(line, " "))):])
		}
		entry.endBlock()
		all = append(all, el("li", g.Group(entry.blocks)))
		start = i
	}
	return all
}

func tableNode(lines []string) g.Node {
	var rows g.Group
	for _, line := range lines {
		line = strings.Trim(line, "|")
		if strings.Trim(line, " -:|") == "" {
			continue
		}
		cell := "td"
		if len(rows) == 0 {
			cell = "th"
		}
		rows = append(rows, el("tr", g.Map(strings.Split(line, "|"), func(content string) g.Node {
			return el(cell, inline(strings.TrimSpace(content)))
		})))
	}
	return el("div", class("scroll"), attr("tabindex", "0"), el("table", el("tbody", rows)))
}

// inline returns a line with code, emphasis and links. Links to other documents are names, as the server does
// not have them.
func inline(line string) g.Node {
	var all g.Group
	for {
		at := strings.IndexAny(line, "`[*<")
		if at < 0 {
			return append(all, text(line))
		}
		node, rest := spanNode(line[at:])
		if node == nil { // a character like any other
			node, rest = text(line[at:at+1]), line[at+1:]
		}
		all = append(all, text(line[:at]), node)
		line = rest
	}
}

// spanNode returns what a line begins with, or nil.
func spanNode(line string) (node g.Node, rest string) {
	within := func(begin, end string) (content string, ok bool) {
		after, ok := strings.CutPrefix(line, begin)
		if ok {
			content, rest, ok = strings.Cut(after, end)
		}
		return content, ok && content != ""
	}
	if content, ok := within("`", "`"); ok {
		return el("code", text(content)), rest
	}
	if content, ok := within("**", "**"); ok {
		return el("strong", inline(content)), rest
	}
	if content, ok := within("<http", ">"); ok {
		return el("code", text("http"+content)), rest
	}
	if name, ok := within("[", "]("); ok {
		if to, after, closed := strings.Cut(rest, ")"); closed {
			return linkNode(name, to), after
		}
	}
	return nil, line
}

func linkNode(name, to string) g.Node {
	if anchor := strings.TrimPrefix(to, "OPERATIONS.md"); strings.HasPrefix(anchor, "#") {
		return el("a", attr("href", anchor), inline(name))
	}
	name = strings.Trim(name, "`")
	if strings.HasSuffix(to, name) {
		return el("cite", text(name))
	}
	return g.Group{text(name + " ("), el("cite", text(to)), text(")")}
}
