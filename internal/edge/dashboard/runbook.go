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
			el("main", id("main"), g.Raw(p.source.Runbook))),
	)})
	return []byte(html), err
}

// anchorOf returns the id of a heading of one word.
func anchorOf(title string) string { return strings.ToLower(title) }
