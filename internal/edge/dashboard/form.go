package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
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

	value *valueLook // in place of an answer, if the key holds a value
}

// formKind is a kind of limiter that can be inspected.
type formKind struct {
	limiter.Kind
	limiter.Row
}

// namesLimit reports whether the form asks for a named limit in place of a limit's numbers.
func (k *formKind) namesLimit() bool { return k.Kind == limiter.Named }

// Names in links of kinds whose decisions depend on more than arguments and time.
const (
	namedShort = "named"
	quotaShort = "quota"
)

func (p *Page) formKinds() (all []formKind) {
	for kind := range limiter.Kinds {
		row := kind.Row()
		switch {
		case row.Calendar:
			row.Short = quotaShort
		case kind == limiter.Named && p.looksByName():
			row.Short = namedShort
		}
		if row.Short != "" {
			all = append(all, formKind{kind, row})
		}
	}
	return all
}

// formKind returns a kind that can be inspected, or nil.
func (p *Page) formKind(kind limiter.Kind) *formKind {
	for _, k := range p.formKinds() {
		if k.Kind == kind {
			return &k
		}
	}
	return nil
}

// formKindOf returns a kind by its name in links; "" is a funnel.
func (p *Page) formKindOf(name string) *formKind {
	for _, k := range p.formKinds() {
		if k.Short == name || name == "" {
			return &k
		}
	}
	return nil
}

type field struct {
	name, label, value, error string
	least                     string
	words                     string // of a text, the hint; empty for a number
	suggested                 []string
}

// newForm reads the form from a query and, if it is filled in, inspects the key.
func (p *Page) newForm(t *words.Texts, query url.Values) form {
	f := form{kind: p.formKindOf(query.Get("kind")), key: field{name: "key", label: t.Key, value: query.Get("key")}}
	if f.value = p.lookAtValue(t, query, f.kind); f.value != nil {
		f.key.value = f.value.key
	}
	if f.kind == nil {
		return f
	}
	f.fields = []field{{name: "db", label: t.Database, least: "0"}}
	for _, name := range f.kind.Arguments() {
		label, least := name, "1"
		switch {
		case name == "period":
			label = t.PeriodSec
		case name == "max_burst" && p.source.Reading == funnel.Burst:
			least = "0"
		}
		f.fields = append(f.fields, field{name: name, label: label, least: least})
	}
	switch {
	case f.kind.namesLimit():
		f.fields = append(f.fields, field{name: "limit", label: t.LimitName, words: t.LimitHint, suggested: p.limitNames()})
	case f.kind.Calendar:
		f.fields = append(f.fields, field{name: "window", label: t.Window, words: t.WindowHint})
	}
	isFilledIn := query.Has(f.fields[1].name)
	for i := range f.fields {
		of := &f.fields[i]
		of.value = query.Get(of.name)
		isFilledIn = isFilledIn && (of.words == "" || query.Has(of.name))
	}
	if f.fields[0].value == "" {
		f.fields[0].value = "0"
	}
	if isFilledIn && f.value == nil {
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
		if f.fields[i].words != "" {
			continue
		}
		numbers[i] = f.fields[i].read(t)
		ok = ok && f.fields[i].error == ""
	}
	if ok && numbers[0] >= int64(p.source.Databases) {
		f.fields[0].error = fmt.Sprintf(t.DatabaseTooLarge, p.source.Databases-1)
		ok = false
	}
	at := store.Key{DB: uint16(numbers[0]), Name: key}
	if f.kind.namesLimit() {
		p.lookByName(t, f, at, ok)
		return
	}
	limit := limiter.Spec{Kind: f.kind.Kind, Unit: f.kind.Unit, Reading: p.source.Reading}
	copy(limit.Numbers[:], numbers[1:])
	if f.kind.Calendar {
		ok = p.readWindow(t, &f.fields[len(f.fields)-1], &limit) && ok
	}
	if !ok {
		return
	}
	var rule limiter.Rule
	if err := limit.Build(&rule); err != nil {
		f.limitError(t, err)
		return
	}
	var err error
	f.answer, err = p.look(t, at, &rule)
	f.lookError(t, err)
}

// lookError sets the error of a look that failed.
func (f *form) lookError(t *words.Texts, err error) {
	switch {
	case errors.Is(err, limiter.ErrWrongType):
		f.error = t.OtherKind
	case err != nil:
		f.error = err.Error()
	}
}

// maxWindowBytes bounds the words of a quota's window, which errors quote.
const maxWindowBytes = 128

// readWindow reads the window of a quota as the command takes it, or sets the field's error.
func (p *Page) readWindow(t *words.Texts, f *field, limit *limiter.Spec) (ok bool) {
	given := strings.Fields(f.value[:min(len(f.value), maxWindowBytes)])
	if len(given) == 0 {
		f.error = t.WindowMissing
		return false
	}
	rules, rest, err := namedlimit.ReadRules(append([]string{"QUOTA", "1"}, given...), p.source.Reading)
	if err == nil && len(rest)+len(rules) > 1 {
		err = fmt.Errorf(t.Unexpected, strings.Join(given[max(0, len(given)-len(rest)):], " "))
	}
	if err == nil {
		limit.Calendar, err = p.source.Calendars.Of(rules[0].Calendar)
	}
	if err != nil {
		f.error = err.Error()
	}
	return err == nil
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
