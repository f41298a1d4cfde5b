package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// form is what is asked about a key, and the answer.
type form struct {
	kind   *formKind // nil for a kind that cannot be looked at
	key    field
	fields []field // the numeric inputs, of which the first is the database
	error  string  // that concerns no single field
	answer *answer // nil while the form is not filled in
}

// formKind is a kind of limiter that can be looked at.
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

// formKindOf returns the kind of a form by its name in links; without one it is that of a funnel.
func formKindOf(name string) *formKind {
	for _, k := range formKinds() {
		if k.Short == name || name == "" {
			return &k
		}
	}
	return nil
}

// field is an input of the form.
type field struct {
	name, label, value, error string
	least                     string
}

// newForm reads the form from a query and, if it is filled in, looks at the key.
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

// fillIn sets the form's answer, or what is wrong with it.
func (p *Page) fillIn(t *words.Texts, f *form) {
	key, keyError := p.readKey(t, f.key.value)
	f.key.error = keyError
	if keyError == "" {
		f.key.value = resp.Quote(key) // an input would change bytes that are not text when it is submitted again
	}
	numbers := make([]int64, len(f.fields))
	ok := keyError == ""
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

// read parses the field's number; a problem with it is set in the field's Error.
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

// limitError shows in the form why the limit is not valid.
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
