package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// render returns markup; that of nil is empty.
func render(n g.Node) (string, error) {
	var b strings.Builder
	if n == nil {
		return "", nil
	}
	err := n.Render(&b)
	return b.String(), err
}

// part is an element of the page that the script keeps up to date.
type part struct {
	id   string
	node g.Node // its inside
}

// parts returns the parts, always as many and in the same order.
func (v *view) parts() []part {
	return []part{
		{"fault", v.faultPart()},
		{"facts", v.factsPart()},
		{"now", v.nowPart()},
		{"top", v.topPart()},
		{"minutes", v.minutesPart()},
		{"limits", v.limitsPart()},
		{"kinds", v.kindsPart()},
		{"store", v.storePart()},
		{"leases", v.leasesPart()},
		{"durability", v.durabilityPart()},
		{"capacity", v.capacityPart()},
		{"form", v.formPart()},
		{"answer", v.answerPart()},
	}
}

// live returns a part's element.
func live(id string, inside g.Node, more ...g.Node) g.Node {
	return h.Div(h.ID(id), g.Attr("data-live"), g.Group(more), inside)
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
	html, err := render(h.Doctype(h.HTML(h.Lang(v.t.Lang), v.head(), h.Body(
		h.A(h.Class("skip"), h.Href("#main"), g.Text(v.t.Skip)),
		v.header(parts["facts"]),
		h.P(h.ID("lost"), h.Class("problem"), h.Role("alert"), g.Attr("hidden"), g.Text(before), h.Span(h.ID("lost-at")), g.Text(after)),
		h.NoScript(h.P(g.Text(v.t.NoScript+v.t.Colon), h.A(h.Href(with(v.query, "refresh", "5")), g.Text(v.t.Title)))),
		h.P(h.ID("spoken"), h.Class("unseen"), h.Role("status")),
		h.Main(
			h.ID("main"), h.TabIndex("-1"),
			v.section("now", v.t.NowHeading, live("fault", parts["fault"]), live("now", parts["now"])),
			v.section("top", v.t.TopHeading, h.P(g.Text(v.t.TopNote)), live("top", parts["top"], h.Class("tops"))),
			v.historySection(parts["minutes"]),
			g.Map([]string{"limits", "kinds", "store", "leases", "durability", "capacity"}, func(id string) g.Node { return live(id, parts[id]) }),
			v.lookSection(parts["form"], parts["answer"]),
		),
		h.Template(h.ID("page"), h.Data("page", data)),
		h.Script(g.Raw(pageJS)),
	))))
	return []byte(html), err
}

// scriptData is what the script must know of the page, as JSON.
func (v *view) scriptData() (string, error) {
	b, err := json.Marshal(struct {
		Lang   string            `json:"lang"`
		Charts []chart           `json:"charts"`
		Words  map[string]string `json:"words"`
	}{v.t.Lang, v.charts(), v.t.forScript()})
	return string(b), err
}

const icon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M1 2h14L9 9v6H7V9z' fill='%230b5cad'/%3E%3C/svg%3E"

func (v *view) head() g.Node {
	return h.Head(
		h.Meta(h.Charset("utf-8")),
		h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
		h.Meta(h.Name("color-scheme"), h.Content("light dark")),
		g.If(v.query.Get("refresh") != "", h.NoScript(h.Meta(g.Attr("http-equiv", "refresh"), h.Content("5")))),
		h.TitleEl(g.Text(v.title())),
		h.Link(h.Rel("icon"), h.Href(icon)),
		h.StyleEl(g.Raw(styleCSS)),
	)
}

func (v *view) header(facts g.Node) g.Node {
	return h.Header(
		h.H1(g.Text("cellserver")),
		live("facts", facts),
		h.Button(h.ID("pause"), h.Type("button"), g.Attr("hidden"), g.Text(v.t.Pause)),
		h.Nav(h.Aria("label", v.t.Languages),
			h.A(h.Href(with(v.query, "lang", v.t.Other)), h.Lang(v.t.Other), g.Attr("hreflang", v.t.Other), g.Text(v.t.OtherName))),
	)
}

// title says, in few letters, how the server is.
func (v *view) title() string {
	if now := v.now(); now != nil {
		if share, ok := now.limitedShare(); ok {
			return fmt.Sprintf(v.t.ShareTitle, wholePercent(share)) + " · cellserver"
		}
	}
	return "cellserver"
}

// section returns a section that is named by its heading.
func (v *view) section(id, heading string, inside ...g.Node) g.Node {
	return h.Section(h.Aria("labelledby", id+"-heading"), h.H2(h.ID(id+"-heading"), g.Text(heading)), g.Group(inside))
}

// scrolling returns what may be wider than a phone.
func scrolling(label string, inside ...g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.Role("region"), h.Aria("label", label), h.TabIndex("0"), g.Group(inside))
}

// headings returns a table's head.
func headings(names ...string) g.Node {
	return h.THead(h.Tr(g.Map(names, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) })))
}

func cells(texts ...string) g.Node {
	return g.Map(texts, func(text string) g.Node { return h.Td(g.Text(text)) })
}

// keyName returns a key in a font in which its bytes can be told apart.
func keyName(quoted string) g.Node {
	return g.El("bdi", h.Class("key"), g.Text(quoted))
}

// copyButton returns a button that the script reveals, and which copies a text.
func (v *view) copyButton(text string) g.Node {
	return h.Button(h.Class("copy"), h.Type("button"), h.Data("copy", text), g.Attr("hidden"), g.Text(v.t.Copy))
}

// with returns a link to this page with one query parameter changed.
func with(query url.Values, name, value string) string {
	changed := url.Values{name: {value}}
	for other, values := range query {
		if other != name {
			changed[other] = values
		}
	}
	return "/?" + changed.Encode()
}
