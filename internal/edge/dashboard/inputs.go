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

// formPart returns the content of the form, which depends on the kind of limiter.
func (v *view) formPart() g.Node {
	f := &v.form
	return g.Group{
		g.If(v.query.Has("lang"), el("input", attr("type", "hidden"), attr("name", "lang"), attr("value", v.query.Get("lang")))),
		f.keyInput(v.t), f.kindInput(v.t, v.page.formKinds()), g.Map(f.fields, field.input),
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

func (f *form) kindInput(t *words.Texts, kinds []formKind) g.Node {
	return el("div", class("field"),
		el("label", attr("for", "field-kind"), text(t.Command)),
		el("select", id("field-kind"), attr("name", "kind"), g.Map(kinds, func(k formKind) g.Node {
			chosen := f.kind != nil && f.kind.Kind == k.Kind
			return el("option", attr("value", k.Short), g.If(chosen, flag("selected")), text(command(k.Kind)))
		})),
	)
}

func (f field) input() g.Node {
	if f.words != "" {
		return f.textInput()
	}
	name := "field-" + f.name
	return el("div", class("field"),
		el("label", attr("for", name), text(f.label)),
		el("input", id(name), attr("name", f.name), attr("value", f.value), attr("inputmode", "numeric"), flag("required"), attr("autocomplete", "off"), f.problem("")),
		f.message(),
	)
}

// textInput is an input of words, with a hint and suggestions.
func (f field) textInput() g.Node {
	name, hint, offer := "field-"+f.name, "hint-"+f.name, "suggested-"+f.name
	return el("div", class("field words"),
		el("label", attr("for", name), text(f.label)),
		el("input", id(name), attr("name", f.name), attr("value", f.value), flag("required"), attr("autocomplete", "off"), attr("autocapitalize", "none"),
			attr("spellcheck", "false"), g.If(len(f.suggested) > 0, attr("list", offer)), f.problem(hint)),
		g.If(len(f.suggested) > 0, el("datalist", id(offer), g.Map(f.suggested, func(one string) g.Node { return el("option", attr("value", one)) }))),
		el("small", id(hint), text(f.words)),
		f.message(),
	)
}

// problem returns the attributes that mark and describe an input.
func (f *field) problem(describedBy string) g.Node {
	if f.error == "" {
		return g.If(describedBy != "", attr("aria-describedby", describedBy))
	}
	return g.Group{attr("aria-invalid", "true"), attr("aria-describedby", strings.TrimSpace(describedBy+" error-"+f.name))}
}

func (f *field) message() g.Node {
	return g.If(f.error != "", el("small", id("error-"+f.name), class("problem"), text(f.error)))
}
