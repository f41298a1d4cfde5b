package dashboard

import (
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
)

func lookSection(t *words.Texts, form, answer g.Node) g.Node {
	return el("section", id("look"), attr("aria-labelledby", "look-heading"),
		el("h2", id("look-heading"), text(t.ProbeHeading)),
		el("p", text(t.ProbeNote)),
		el("form", id("form"), flag("data-live"), attr("action", "/#look"), attr("method", "get"), flag("novalidate"), form),
		live("answer", answer),
	)
}

// formPart is the inside of the form, which changes with the kind of limiter that is asked about.
func (v *view) formPart() g.Node {
	f := &v.form
	return g.Group{
		g.If(v.query.Has("lang"), el("input", attr("type", "hidden"), attr("name", "lang"), attr("value", v.query.Get("lang")))),
		f.keyInput(v.t), f.kindInput(v.t), g.Map(f.fields, field.input),
		el("button", attr("type", "submit"), text(v.t.Probe)),
	}
}

func (f *form) keyInput(t *words.Texts) g.Node {
	key := &f.key
	return el("div", class("field long"),
		el("label", attr("for", "field-key"), text(key.label)),
		el("input", id("field-key"), attr("name", "key"), attr("value", key.value), flag("required"), attr("autocomplete", "off"), attr("autocapitalize", "none"),
			attr("spellcheck", "false"), key.problem("hint-key")),
		el("small", id("hint-key"), text(t.KeyHint)),
		key.message(),
	)
}

func (f *form) kindInput(t *words.Texts) g.Node {
	return el("div", class("field"),
		el("label", attr("for", "field-kind"), text(t.Command)),
		el("select", id("field-kind"), attr("name", "kind"), g.Map(formKinds(), func(k formKind) g.Node {
			chosen := f.kind != nil && f.kind.Kind == k.Kind
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
