package dashboard

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
)

// part is an element that the script keeps up to date.
type part struct {
	id   string
	node g.Node // its content
}

// parts returns all parts, always in the same order: update.Have depends on it.
func (v *view) parts() []part {
	return []part{
		{"fault", v.faultPart()},
		{"faults", v.moreFaultsPart()},
		{"facts", v.factsPart()},
		{"now", v.nowPart()},
		{"error", v.lastErrorPart()},
		{"top", v.topPart()},
		{"minutes", v.minutesPart()},
		{"limits", v.limitsPart()},
		{"kinds", v.kindsPart()},
		{"doors", v.doorsPart()},
		{"refused", v.refusedPart()},
		{"store", v.storePart()},
		{"replication", v.replicationPart()},
		{"durability", v.durabilityPart()},
		{"capacity", v.capacityPart()},
		{"drawer", v.drawerPart()},
	}
}

func live(name string, inside g.Node, more ...g.Node) g.Node {
	return el("div", id(name), flag("data-live"), g.Group(more), inside)
}

func (p *Page) servePage(v *view, _ *http.Request) (body []byte, err error) {
	parts := map[string]g.Node{}
	for _, part := range v.parts() {
		parts[part.id] = part.node
	}
	data, err := v.scriptData()
	if err != nil {
		return nil, err
	}
	before, after, _ := strings.Cut(v.t.Lost, "%s")
	refresh := g.If(v.query.Get("refresh") != "", el("noscript", el("meta", attr("http-equiv", "refresh"), attr("content", "5"))))
	html, err := render(g.Group{g.Raw("<!doctype html>"), el("html", attr("lang", v.t.Lang), head(v.title(), refresh), el("body",
		el("a", class("skip"), attr("href", "#main"), text(v.t.Skip)),
		v.header(parts["facts"]),
		el("p", id("lost"), class("alarm critical what"), attr("role", "alert"), flag("hidden"), critical.sign(v.t), text(before), el("span", id("lost-at")), text(after)),
		el("p", id("paused"), attr("role", "status"), flag("hidden"), text(v.t.Paused+" "), el("time", id("paused-at"))),
		el("noscript", el("p", text(v.t.NoScript+v.t.Colon), el("a", attr("href", v.withChoice("refresh", "5")), text(v.t.Title)))),
		el("p", id("spoken"), class("unseen"), attr("role", "status")),
		el("main",
			id("main"), attr("tabindex", "-1"),
			v.section("now", v.t.NowHeading,
				live("fault", parts["fault"]), live("faults", parts["faults"]), live("now", parts["now"]), live("error", parts["error"])),
			v.section("top", v.t.TopHeading, el("p", text(v.t.TopNote)), live("top", parts["top"], class("tops"))),
			live("limits", parts["limits"]),
			v.historySection(parts["minutes"]),
			g.Map([]string{"kinds", "doors", "refused", "store", "replication", "durability", "capacity"}, func(name string) g.Node { return live(name, parts[name]) }),
		),
		el("aside", id("drawer"), flag("data-live"), attr("aria-labelledby", "drawer-heading"), parts["drawer"]),
		el("template", id("page"), attr("data-page", data)),
		el("script", g.Raw(script())),
	))})
	return []byte(html), err
}

// scriptData returns what the script needs, as JSON.
func (v *view) scriptData() (string, error) {
	b, err := json.Marshal(struct {
		Lang   string            `json:"lang"`
		Charts []chart           `json:"charts"`
		Words  map[string]string `json:"words"`
	}{v.t.Lang, v.charts(), v.t.ForScript()})
	return string(b), err
}

const icon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M1 2h14L9 9v6H7V9z' fill='%230b5cad'/%3E%3C/svg%3E"

func head(title string, more ...g.Node) g.Node {
	return el("head",
		el("meta", attr("charset", "utf-8")),
		el("meta", attr("name", "viewport"), attr("content", "width=device-width, initial-scale=1")),
		el("meta", attr("name", "color-scheme"), attr("content", "light dark")),
		g.Group(more),
		el("title", text(title)),
		el("link", attr("rel", "icon"), attr("href", icon)),
		el("style", g.Raw(style())),
	)
}

func (v *view) header(facts g.Node) g.Node {
	return el("header",
		el("h1", text("cellserver")),
		v.findForm(),
		live("facts", facts),
		el("button", id("pause"), attr("type", "button"), flag("hidden"), text(v.t.Pause)),
		el("nav", attr("aria-label", v.t.Languages),
			el("a", attr("href", v.withChoice("lang", v.t.Other)), attr("lang", v.t.Other), attr("hreflang", v.t.Other), text(v.t.OtherName))),
	)
}

// title summarizes the server in a few letters.
func (v *view) title() string {
	title := "cellserver"
	if now := v.now(); now != nil {
		if share, ok := now.limitedShare(); ok {
			title = fmt.Sprintf(v.t.ShareTitle, words.WholePercent(share)) + " · cellserver"
		}
	}
	if len(v.faults) > 0 {
		title = "⚠ " + title
	}
	return title
}

func (p *Page) serveRunbook(v *view, _ *http.Request) (body []byte, err error) {
	home := "/"
	if lang := v.query.Get("lang"); lang != "" {
		home = "/?lang=" + v.t.Lang[:2]
	}
	html, err := render(g.Group{g.Raw("<!doctype html>"), el("html", attr("lang", "en"), head("cellserver runbook"),
		el("body", class("runbook"),
			el("header", el("a", attr("href", home), attr("lang", v.t.Lang), text(v.t.BackToPage))),
			el("main", id("main"), g.Raw(p.source.Runbook))),
	)})
	return []byte(html), err
}

// anchorOf returns the id of a heading of one word.
func anchorOf(title string) string { return strings.ToLower(title) }

//go:embed style/*.css script/*.js
var files embed.FS

// style returns the page's style sheet: later files may override earlier ones.
func style() string {
	return joined("style", ".css", "base", "tiles", "charts", "tables", "drawer", "actions", "last")
}

// script returns the page's script: each file uses those before it.
func script() string {
	return "\"use strict\";\n{\n" + joined("script", ".js", "format", "samples", "morph", "chart", "board", "live", "drawer", "actions", "copy") + "}\n"
}

func joined(dir, extension string, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		text, _ := files.ReadFile(dir + "/" + name + extension) // embedded, so it exists
		b.Write(text)
	}
	return b.String()
}
