package dashboard

import (
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
)

// The compiler would inline gomponents' constructors at each use, half a megabyte in all; hence the noinline
// wrappers.

//go:noinline
func el(name string, inside ...g.Node) g.Node { return g.El(name, inside...) }

//go:noinline
func attr(name, value string) g.Node { return g.Attr(name, value) }

//go:noinline
func flag(name string) g.Node { return g.Attr(name) }

//go:noinline
func text(t string) g.Node { return g.Text(t) }

func class(names string) g.Node { return attr("class", names) }

func id(name string) g.Node { return attr("id", name) }

// render returns markup; a nil node is empty.
func render(n g.Node) (string, error) {
	var b strings.Builder
	if n == nil {
		return "", nil
	}
	err := n.Render(&b)
	return b.String(), err
}

func list(classes string, entries ...g.Node) g.Node {
	return el("dl", class(classes), g.Group(entries))
}

func entry(name, value string) g.Node { return el("div", el("dt", text(name)), el("dd", text(value))) }

func codeEntry(name, code string) g.Node {
	return el("div", el("dt", text(name)), el("dd", el("code", text(code))))
}

func (v *view) section(name, heading string, inside ...g.Node) g.Node {
	return el("section", attr("aria-labelledby", name+"-heading"), el("h2", id(name+"-heading"), text(heading)), g.Group(inside))
}

// scrolling wraps content that may be wider than a phone.
func scrolling(label string, inside ...g.Node) g.Node {
	return el("div", class("scroll"), attr("role", "region"), attr("aria-label", label), attr("tabindex", "0"), g.Group(inside))
}

func headings(names ...string) g.Node {
	return el("thead", el("tr", g.Map(names, func(name string) g.Node { return el("th", attr("scope", "col"), text(name)) })))
}

func cells(values ...string) g.Node {
	return g.Map(values, func(value string) g.Node { return el("td", text(value)) })
}

// keyName returns a key in a font that distinguishes its bytes. One with escapes is shown in the order of its
// bytes, which letters written from right to left would change.
func keyName(quoted string) g.Node {
	classes := "key"
	if strings.Contains(quoted, `\`) {
		classes += " bytes"
	}
	return el("bdi", class(classes), attr("dir", "ltr"), text(quoted))
}

// copyButton returns a copy button, which the script reveals.
func copyButton(t *words.Texts, copied string) g.Node {
	return el("button", class("copy"), attr("type", "button"), attr("data-copy", copied), flag("hidden"), text(t.Copy))
}
