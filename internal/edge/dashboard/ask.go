package dashboard

import (
	"strings"

	g "maragu.dev/gomponents"
)

func (v *view) lookSection(form, answer g.Node) g.Node {
	return el("section", id("look"), attr("aria-labelledby", "look-heading"),
		el("h2", id("look-heading"), text(v.t.ProbeHeading)),
		el("p", text(v.t.ProbeNote)),
		el("form", id("form"), flag("data-live"), attr("action", "/#look"), attr("method", "get"), flag("novalidate"), form),
		live("answer", answer),
	)
}

// formPart is the inside of the form, which changes with the kind of limiter that is asked about.
func (v *view) formPart() g.Node {
	f := &v.form
	return g.Group{
		g.If(v.query.Has("lang"), el("input", attr("type", "hidden"), attr("name", "lang"), attr("value", v.query.Get("lang")))),
		v.keyInput(&f.key), v.kindInput(), g.Map(f.fields, field.input),
		el("button", attr("type", "submit"), text(v.t.Probe)),
	}
}

func (v *view) keyInput(f *field) g.Node {
	return el("div", class("field long"),
		el("label", attr("for", "field-key"), text(f.label)),
		el("input", id("field-key"), attr("name", "key"), attr("value", f.value), flag("required"), attr("autocomplete", "off"), attr("autocapitalize", "none"),
			attr("spellcheck", "false"), f.problem("hint-key")),
		el("small", id("hint-key"), text(v.t.KeyHint)),
		f.message(),
	)
}

func (v *view) kindInput() g.Node {
	return el("div", class("field"),
		el("label", attr("for", "field-kind"), text(v.t.Command)),
		el("select", id("field-kind"), attr("name", "kind"), g.Map(formKinds(), func(k formKind) g.Node {
			chosen := v.form.kind != nil && v.form.kind.Kind == k.Kind
			return el("option", attr("value", k.Short), g.If(chosen, flag("selected")), text(command(k.Kind)))
		})),
	)
}

func (f field) input() g.Node {
	name := "field-" + f.name
	return el("div", class("field"),
		el("label", attr("for", name), text(f.label)),
		el("input", id(name), attr("name", f.name), attr("value", f.value), attr("inputmode", "numeric"), flag("required"), attr("autocomplete", "off"), f.problem("")),
		f.message(),
	)
}

// problem returns the attributes of an input: what describes it, and whether it is wrong.
func (f *field) problem(describedBy string) g.Node {
	if f.error == "" {
		return g.If(describedBy != "", attr("aria-describedby", describedBy))
	}
	return g.Group{attr("aria-invalid", "true"), attr("aria-describedby", strings.TrimSpace(describedBy+" error-"+f.name))}
}

func (f *field) message() g.Node {
	return g.If(f.error != "", el("small", id("error-"+f.name), class("problem"), text(f.error)))
}
