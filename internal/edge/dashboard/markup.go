package dashboard

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/history"
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
		{"envoy", v.envoyPart()},
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
			g.Map([]string{"kinds", "doors", "envoy", "refused", "store", "replication", "durability", "capacity"}, func(name string) g.Node { return live(name, parts[name]) }),
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
		if share, ok := now.LimitedShare(); ok {
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

// update is the reply of /live.json: the points and parts that the browser lacks.
type update struct {
	Boot    string                     `json:"boot"`    // identifies this Page and start
	Seq     int                        `json:"seq"`     // of the last point; the next request's after
	AtMs    int64                      `json:"atMs"`    // the server's clock
	StepMs  int64                      `json:"stepMs"`  // between two points
	StartMs int64                      `json:"startMs"` // the server's start
	Whole   bool                       `json:"whole"`   // the points replace all earlier ones
	Points  map[string]json.RawMessage `json:"points"`  // by column name
	Have    string                     `json:"have"`    // what the browser shows now; the next request's have
	Parts   map[string]string          `json:"parts"`   // inner HTML, by element id
	Title   string                     `json:"title"`
}

// newUpdate returns what a browser lacks. Its query is the page's, with boot, after and have of an earlier
// update.
func (p *Page) newUpdate(v *view, query url.Values) (*update, error) {
	points, whole := v.after(query.Get("boot") == p.boot, query.Get("after"))
	u := &update{
		Boot: p.boot, Seq: v.added, AtMs: p.source.Now() / 1e6, StepMs: history.Interval.Milliseconds(), StartMs: p.source.Facts().StartedNs / 1e6, Whole: whole,
		Points: map[string]json.RawMessage{}, Parts: map[string]string{}, Title: v.title(),
	}
	for _, c := range p.columns() {
		u.Points[c.name] = c.appendDeltas(nil, points)
	}
	have := query.Get("have")
	for i, part := range v.parts() {
		html, err := render(part.node)
		if err != nil {
			return nil, fmt.Errorf("dashboard: %s: %w", part.id, err)
		}
		mark := p.mark(html)
		u.Have += mark
		if at := i * len(mark); at+len(mark) > len(have) || have[at:at+len(mark)] != mark {
			u.Parts[part.id] = html
		}
	}
	return u, nil
}

// after returns the points after seq, or all of them, with whole set, if the history does not continue from
// there.
func (v *view) after(sameBoot bool, seq string) (points []history.Point, whole bool) {
	n, err := strconv.Atoi(seq)
	missing := v.added - n
	if !sameBoot || err != nil || missing < 0 || missing > len(v.points) {
		return v.points, true
	}
	return v.points[len(v.points)-missing:], false
}

// mark returns a short hash of a part, different for each Page.
func (p *Page) mark(html string) string {
	var sum [8]byte
	binary.BigEndian.PutUint64(sum[:], maphash.String(p.seed, html))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

func (p *Page) serveUpdate(v *view, r *http.Request) (body []byte, err error) {
	u, err := p.newUpdate(v, r.URL.Query())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // the parts are markup
	err = encoder.Encode(u)
	return b.Bytes(), err
}
