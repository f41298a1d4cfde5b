package dashboard

import (
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"cellserver/internal/funnel"
)

func (v *view) lookSection(answer g.Node) g.Node {
	f := &v.form
	return h.Section(h.ID("look"), h.Aria("labelledby", "look-heading"),
		h.H2(h.ID("look-heading"), g.Text(v.t.ProbeHeading)),
		h.P(g.Text(v.t.ProbeNote)),
		h.Form(h.Action("/#look"), h.Method("get"), g.Attr("novalidate"),
			g.If(v.query.Has("lang"), h.Input(h.Type("hidden"), h.Name("lang"), h.Value(v.query.Get("lang")))),
			v.keyInput(&f.key), g.Map(f.fields, field.input),
			h.Button(h.Type("submit"), g.Text(v.t.Probe)),
		),
		live("answer", answer),
	)
}

func (v *view) keyInput(f *field) g.Node {
	return h.Div(h.Class("field long"),
		h.Label(h.For("field-key"), g.Text(f.label)),
		h.Input(h.ID("field-key"), h.Name("key"), h.Value(f.value), h.Required(), h.AutoComplete("off"), g.Attr("autocapitalize", "none"),
			g.Attr("spellcheck", "false"), f.problem("hint-key")),
		h.Small(h.ID("hint-key"), g.Text(v.t.KeyHint)),
		f.message(),
	)
}

func (f field) input() g.Node {
	id := "field-" + f.name
	return h.Div(h.Class("field"),
		h.Label(h.For(id), g.Text(f.label)),
		h.Input(h.ID(id), h.Name(f.name), h.Value(f.value), g.Attr("inputmode", "numeric"), h.Required(), h.AutoComplete("off"), f.problem("")),
		f.message(),
	)
}

// problem returns the attributes of an input: what describes it, and whether it is wrong.
func (f *field) problem(describedBy string) g.Node {
	if f.error == "" {
		return g.If(describedBy != "", h.Aria("describedby", describedBy))
	}
	return g.Group{h.Aria("invalid", "true"), h.Aria("describedby", strings.TrimSpace(describedBy+" error-"+f.name))}
}

func (f *field) message() g.Node {
	return g.If(f.error != "", h.Small(h.ID("error-"+f.name), h.Class("problem"), g.Text(f.error)))
}

func (v *view) answerPart() g.Node {
	a := v.form.answer
	switch {
	case v.form.error != "":
		return h.P(h.Class("problem"), h.Role("alert"), g.Text(v.t.FormErrors+" "+v.form.error))
	case a == nil:
		return nil
	}
	class, verdict := "allowed", "✓ "+v.t.NextAllowed
	if a.next.Limited {
		class, verdict = "limited", "✕ "+v.t.NextLimited
	}
	return g.Group{
		h.H3(g.Text(v.t.FunnelOf+" "), keyName(a.key)),
		h.P(h.Class("verdict "+class), g.Text(verdict)),
		g.If(!a.known, h.P(g.Text(v.t.NoState))),
		h.Div(h.Class("funnel"), a.picture(v.t), h.Dl(
			h.Dt(g.Text(v.t.Level)), h.Dd(g.Text(a.level)),
			h.Dt(g.Text(v.t.Leak)), h.Dd(g.Text(a.leak)),
			h.Dt(g.Text(v.t.UntilFree)), h.Dd(g.Text(a.free)),
			h.Dt(g.Text(v.t.UntilEmpty)), h.Dd(g.Text(a.empty)),
			h.Dt(g.Text(v.t.ReplyHeading)), h.Dd(h.Code(g.Text(replyText(a.next)))),
		)),
	}
}

// replyText is what CL.THROTTLE replies, as redis-cli --raw would have it on one line.
func replyText(r funnel.Result) string {
	limited := 0
	if r.Limited {
		limited = 1
	}
	return fmt.Sprintf("%d %d %d %d %d", limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter)
}

// picture draws the funnel.
func (a *answer) picture(t *texts) g.Node {
	el, number := g.El, func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return el("svg", g.Attr("viewBox", "0 0 120 150"), h.Role("img"), h.Aria("labelledby", "bucket-title"), h.Aria("describedby", "bucket-desc"),
		el("title", h.ID("bucket-title"), g.Text(fmt.Sprintf(t.Picture, a.share, a.level))),
		el("desc", h.ID("bucket-desc"), g.Text(t.BucketDescription)),
		el("rect", h.Class("water"), g.Attr("x", "15"), h.Width("90"), g.Attr("y", number(a.waterTop)), h.Height(number(a.waterHigh))),
		el("path", h.Class("glass"), g.Attr("d", "M15 6V110H54V122M66 122V110H105V6")),
		el("path", h.Class("water"), g.Attr("d", "M60 128q6 9 0 12q-6-3 0-12")),
		el("text", g.Attr("x", "60"), g.Attr("y", "66"), g.Attr("text-anchor", "middle"), g.Text(a.share)),
	)
}
