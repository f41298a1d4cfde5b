package dashboard

import (
	"strings"

	g "maragu.dev/gomponents"
)

// These are gomponents' own, which the compiler would otherwise write out again for each element of the page: half a megabyte.

// el returns an element with its attributes and what is in it.
//
//go:noinline
func el(name string, inside ...g.Node) g.Node { return g.El(name, inside...) }

// attr returns an attribute, whose value is escaped.
//
//go:noinline
func attr(name, value string) g.Node { return g.Attr(name, value) }

// flag returns an attribute without a value.
//
//go:noinline
func flag(name string) g.Node { return g.Attr(name) }

// text returns escaped text.
//
//go:noinline
func text(t string) g.Node { return g.Text(t) }

func class(names string) g.Node { return attr("class", names) }

func id(name string) g.Node { return attr("id", name) }

// render returns markup; that of nil is empty.
func render(n g.Node) (string, error) {
	var b strings.Builder
	if n == nil {
		return "", nil
	}
	err := n.Render(&b)
	return b.String(), err
}
