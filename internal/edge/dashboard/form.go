package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// form is a question about a key, with the answer.
type form struct {
	kind   *formKind // nil for a kind that cannot be inspected
	key    field
	fields []field // numeric inputs; the first is the database
	error  string  // of no single field
	answer *answer // nil while the form is not filled in
}

// formKind is a kind of limiter that can be inspected.
type formKind struct {
	limiter.Kind
	limiter.Row
}

func formKinds() (all []formKind) {
	for kind := range limiter.Kinds {
		if row := kind.Row(); row.Short != "" {
			all = append(all, formKind{kind, row})
		}
	}
	return all
}

// formKindOf returns a kind by its name in links; "" is a funnel.
func formKindOf(name string) *formKind {
	for _, k := range formKinds() {
		if k.Short == name || name == "" {
			return &k
		}
	}
	return nil
}

type field struct {
	name, label, value, error string
	least                     string
}

// newForm reads the form from a query and, if it is filled in, inspects the key.
func (p *Page) newForm(t *words.Texts, query url.Values) form {
	f := form{kind: formKindOf(query.Get("kind")), key: field{name: "key", label: t.Key, value: query.Get("key")}}
	if f.kind == nil {
		return f
	}
	f.fields = []field{{name: "db", label: t.Database, value: query.Get("db"), least: "0"}}
	for _, name := range f.kind.Arguments() {
		label, least := name, "1"
		switch {
		case name == "period":
			label = t.PeriodSec
		case name == "max_burst" && p.source.Reading == funnel.Burst:
			least = "0"
		}
		f.fields = append(f.fields, field{name: name, label: label, value: query.Get(name), least: least})
	}
	if f.fields[0].value == "" {
		f.fields[0].value = "0"
	}
	if query.Has(f.fields[1].name) {
		p.fillIn(t, &f)
	}
	return f
}

// fillIn sets the answer or the errors.
func (p *Page) fillIn(t *words.Texts, f *form) {
	key, problem := p.readKey(t, f.key.value)
	f.key.error = problem
	if problem == "" {
		f.key.value = resp.Quote(key) // an input would change binary bytes when submitted again
	}
	numbers := make([]int64, len(f.fields))
	ok := problem == ""
	for i := range f.fields {
		numbers[i] = f.fields[i].read(t)
		ok = ok && f.fields[i].error == ""
	}
	if ok && numbers[0] >= int64(p.source.Databases) {
		f.fields[0].error = fmt.Sprintf(t.DatabaseTooLarge, p.source.Databases-1)
		ok = false
	}
	if !ok {
		return
	}
	var rule limiter.Rule
	limit := limiter.Spec{Kind: f.kind.Kind, Unit: f.kind.Unit, Reading: p.source.Reading}
	copy(limit.Numbers[:], numbers[1:])
	if err := limit.Build(&rule); err != nil {
		f.limitError(t, err)
		return
	}
	var err error
	f.answer, err = p.look(t, store.Key{DB: uint16(numbers[0]), Name: key}, &rule)
	switch {
	case errors.Is(err, limiter.ErrWrongType):
		f.error = t.OtherKind
	case err != nil:
		f.error = err.Error()
	}
}

func (p *Page) readKey(t *words.Texts, text string) (key []byte, problem string) {
	if text == "" {
		return nil, t.KeyMissing
	}
	key, ok := resp.Unquote(text)
	if !ok {
		return nil, t.KeyQuotes
	}
	if len(key) > p.source.MaxKeyBytes {
		return nil, fmt.Sprintf(t.KeyTooLong, p.source.MaxKeyBytes)
	}
	return key, ""
}

// read parses the field's number, or sets its error.
func (f *field) read(t *words.Texts) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(f.value), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		f.error = t.NumberTooLarge
	case err != nil:
		f.error = t.NotANumber
	case n < 0:
		f.error = fmt.Sprintf(t.NumberTooSmall, f.least)
	}
	return n
}

// limitError sets the errors for an invalid limit.
func (f *form) limitError(t *words.Texts, err error) {
	var argument *funnel.ArgumentError
	switch {
	case errors.As(err, &argument):
		for i := range f.fields {
			if f.fields[i].name == argument.Name {
				f.fields[i].error = fmt.Sprintf(t.NumberTooSmall, strconv.FormatInt(argument.Least, 10))
			}
		}
	case errors.Is(err, funnel.ErrZeroRate):
		f.error = t.ZeroRate
	case errors.Is(err, funnel.ErrTooSlow):
		f.error = t.TooSlow
	case errors.Is(err, window.ErrTooLong):
		f.error = t.TooLong
	default:
		f.error = err.Error()
	}
}

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
