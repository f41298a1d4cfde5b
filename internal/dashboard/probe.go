package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"cellserver/internal/funnel"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// form is what is asked about a key, and the answer.
type form struct {
	key    field
	fields []field // the numeric inputs
	error  string  // that concerns no single field
	answer *answer // nil while the form is not filled in
}

// field is an input of the form.
type field struct {
	name, label, value, error string
	least                     string
}

// answer is a key's funnel, with what the next call for one unit would reply.
type answer struct {
	key                 string
	known               bool
	next                funnel.Result
	level               string
	leak                string
	free, empty         string // when
	share               string // of the funnel that is full
	waterTop, waterHigh float64
}

// The picture's bucket, in units of its SVG.
const (
	bucketTop  = 10.0
	bucketHigh = 100.0
)

// probe reads the form from a query and, if it is filled in, inspects the key.
func (p *Page) probe(t *texts, query url.Values) form {
	leastBurst := "0"
	if p.source.Reading == funnel.Capacity {
		leastBurst = "1"
	}
	v := form{
		key: field{name: "key", label: t.Key, value: query.Get("key")},
		fields: []field{
			{name: "db", label: t.Database, value: query.Get("db"), least: "0"},
			{name: "max_burst", label: "max_burst", value: query.Get("max_burst"), least: leastBurst},
			{name: "count", label: "count", value: query.Get("count"), least: "1"},
			{name: "period", label: t.PeriodSec, value: query.Get("period"), least: "1"},
		},
	}
	if v.fields[0].value == "" {
		v.fields[0].value = "0"
	}
	if !query.Has("max_burst") { // links of hot keys give the key without its limit
		return v
	}
	key, keyError := p.readKey(t, v.key.value)
	v.key.error = keyError
	if keyError == "" {
		v.key.value = resp.Quote(key) // an input would change bytes that are not text when it is submitted again
	}
	var numbers [4]int64
	ok := keyError == ""
	for i := range v.fields {
		numbers[i] = v.fields[i].read(t)
		ok = ok && v.fields[i].error == ""
	}
	if ok && numbers[0] >= int64(p.source.Databases) {
		v.fields[0].error = fmt.Sprintf(t.DatabaseTooLarge, p.source.Databases-1)
		ok = false
	}
	if !ok {
		return v
	}
	limit, err := funnel.NewLimit(p.source.Reading, numbers[1], numbers[2], numbers[3])
	if err != nil {
		v.limitError(t, err)
		return v
	}
	if v.answer, err = p.look(t, uint16(numbers[0]), key, limit, numbers); err != nil {
		v.error = err.Error()
	}
	return v
}

func (p *Page) readKey(t *texts, text string) (key []byte, problem string) {
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
func (f *field) read(t *texts) int64 {
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
func (v *form) limitError(t *texts, err error) {
	var argument *funnel.ArgumentError
	switch {
	case errors.As(err, &argument):
		for i := range v.fields {
			if v.fields[i].name == argument.Name {
				v.fields[i].error = fmt.Sprintf(t.NumberTooSmall, strconv.FormatInt(argument.Least, 10))
			}
		}
	case errors.Is(err, funnel.ErrZeroRate):
		v.error = t.ZeroRate
	case errors.Is(err, funnel.ErrTooSlow):
		v.error = t.TooSlow
	default:
		v.error = err.Error()
	}
}

// look looks at a key's funnel.
func (p *Page) look(t *texts, db uint16, key []byte, limit funnel.Limit, numbers [4]int64) (*answer, error) {
	probe, err := p.source.Look(p.source.Now(), store.Key{DB: db, Name: key}, limit)
	if err != nil {
		return nil, err
	}
	outlook := probe.Outlook
	share := outlook.Level / float64(probe.Next.Limit)
	high := bucketHigh * min(share, 1)
	return &answer{
		key:       resp.Quote(key),
		known:     probe.Known,
		next:      probe.Next,
		level:     fmt.Sprintf(t.LevelOf, rate.text(outlook.Level), grouped(probe.Next.Limit)),
		leak:      fmt.Sprintf(t.LeakRate, grouped(numbers[2]), grouped(numbers[3])),
		free:      t.after(outlook.FreeNs),
		empty:     t.after(outlook.EmptyNs),
		share:     percent(share),
		waterTop:  bucketTop + bucketHigh - high,
		waterHigh: high,
	}, nil
}

// after writes when something is, that many nanoseconds from now.
func (t *texts) after(ns uint64) string {
	if ns == 0 {
		return t.Now
	}
	return fmt.Sprintf(t.In, waitText(ns))
}
