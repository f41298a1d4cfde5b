package dashboard

import (
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

func (v *view) lookSection(form, answer g.Node) g.Node {
	return h.Section(h.ID("look"), h.Aria("labelledby", "look-heading"),
		h.H2(h.ID("look-heading"), g.Text(v.t.ProbeHeading)),
		h.P(g.Text(v.t.ProbeNote)),
		h.Form(h.ID("form"), g.Attr("data-live"), h.Action("/#look"), h.Method("get"), g.Attr("novalidate"), form),
		live("answer", answer),
	)
}

// formPart is the inside of the form, which changes with the kind of limiter that is asked about.
func (v *view) formPart() g.Node {
	f := &v.form
	return g.Group{
		g.If(v.query.Has("lang"), h.Input(h.Type("hidden"), h.Name("lang"), h.Value(v.query.Get("lang")))),
		v.keyInput(&f.key), v.kindInput(), g.Map(f.fields, field.input),
		h.Button(h.Type("submit"), g.Text(v.t.Probe)),
	}
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

func (v *view) kindInput() g.Node {
	return h.Div(h.Class("field"),
		h.Label(h.For("field-kind"), g.Text(v.t.Command)),
		h.Select(h.ID("field-kind"), h.Name("kind"), g.Map(formKinds(), func(k formKind) g.Node {
			chosen := v.form.kind != nil && v.form.kind.name == k.name
			return h.Option(h.Value(k.name), g.If(chosen, h.Selected()), g.Text(command(k.Kind)))
		})),
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
