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

// probeView is the form and its result.
type probeView struct {
	Key    field
	Fields []field // the numeric inputs
	Error  string  // that concerns no single field
	Answer *answerView
}

// field is an input of the form.
type field struct {
	Name, Label, Value, Error string
	Least                     string
}

// answerView is a key's funnel.
type answerView struct {
	Key       string
	Limited   bool
	Verdict   string
	State     string // a note for a key without state
	Level     string
	Leak      string
	Free      string
	Empty     string
	Reply     string
	Picture   string // its text alternative
	WaterTop  float64
	WaterHigh float64
	Percent   string
}

// The picture's bucket, in units of its SVG.
const (
	bucketTop  = 10.0
	bucketHigh = 100.0
)

// probe reads the form from a query and, if it is filled in, inspects the key.
func (p *Page) probe(t *texts, query url.Values) probeView {
	leastBurst := "0"
	if p.source.Reading == funnel.Capacity {
		leastBurst = "1"
	}
	v := probeView{
		Key: field{Name: "key", Label: t.Key, Value: query.Get("key")},
		Fields: []field{
			{Name: "db", Label: t.Database, Value: query.Get("db"), Least: "0"},
			{Name: "max_burst", Label: "max_burst", Value: query.Get("max_burst"), Least: leastBurst},
			{Name: "count", Label: "count", Value: query.Get("count"), Least: "1"},
			{Name: "period", Label: t.PeriodSec, Value: query.Get("period"), Least: "1"},
		},
	}
	if v.Fields[0].Value == "" {
		v.Fields[0].Value = "0"
	}
	if !query.Has("max_burst") { // links of hot keys give the key without its limit
		return v
	}
	key, keyError := p.readKey(t, v.Key.Value)
	v.Key.Error = keyError
	if keyError == "" {
		v.Key.Value = resp.Quote(key) // an input would change bytes that are not text when it is submitted again
	}
	var numbers [4]int64
	ok := keyError == ""
	for i := range v.Fields {
		numbers[i] = v.Fields[i].read(t)
		ok = ok && v.Fields[i].Error == ""
	}
	if ok && numbers[0] >= int64(p.source.Databases) {
		v.Fields[0].Error = fmt.Sprintf(t.DatabaseTooLarge, p.source.Databases-1)
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
	if v.Answer, err = p.look(t, uint16(numbers[0]), key, limit, numbers); err != nil {
		v.Error = err.Error()
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
	n, err := strconv.ParseInt(strings.TrimSpace(f.Value), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		f.Error = t.NumberTooLarge
	case err != nil:
		f.Error = t.NotANumber
	case n < 0:
		f.Error = fmt.Sprintf(t.NumberTooSmall, f.Least)
	}
	return n
}

// limitError shows in the form why the limit is not valid.
func (v *probeView) limitError(t *texts, err error) {
	var argument *funnel.ArgumentError
	switch {
	case errors.As(err, &argument):
		for i := range v.Fields {
			if v.Fields[i].Name == argument.Name {
				v.Fields[i].Error = fmt.Sprintf(t.NumberTooSmall, strconv.FormatInt(argument.Least, 10))
			}
		}
	case errors.Is(err, funnel.ErrZeroRate):
		v.Error = t.ZeroRate
	case errors.Is(err, funnel.ErrTooSlow):
		v.Error = t.TooSlow
	default:
		v.Error = err.Error()
	}
}

// look looks at a key's funnel.
func (p *Page) look(t *texts, db uint16, key []byte, limit funnel.Limit, numbers [4]int64) (*answerView, error) {
	probe, err := p.source.Look(p.source.Now(), store.Key{DB: db, Name: key}, limit)
	if err != nil {
		return nil, err
	}
	now, next, outlook := probe.Now, probe.Next, probe.Outlook
	share := outlook.Level / float64(now.Limit)
	high := bucketHigh * min(share, 1)
	a := &answerView{
		Key:       resp.Quote(key),
		Limited:   next.Limited,
		Verdict:   t.NextAllowed,
		Level:     fmt.Sprintf(t.LevelOf, rate.text(outlook.Level), grouped(now.Limit)),
		Leak:      fmt.Sprintf(t.LeakRate, grouped(numbers[2]), grouped(numbers[3])),
		Free:      t.Now,
		Empty:     t.Now,
		Reply:     fmt.Sprintf("%d %d %d %d %d", integer(now.Limited), now.Limit, now.Remaining, now.RetryAfter, now.ResetAfter),
		WaterTop:  bucketTop + bucketHigh - high,
		WaterHigh: high,
		Percent:   percent(share),
	}
	if !probe.Known {
		a.State = t.NoState
	}
	if next.Limited {
		a.Verdict = t.NextLimited
	}
	if outlook.FreeNs > 0 {
		a.Free = fmt.Sprintf(t.In, waitText(outlook.FreeNs))
	}
	if outlook.EmptyNs > 0 {
		a.Empty = fmt.Sprintf(t.In, waitText(outlook.EmptyNs))
	}
	a.Picture = fmt.Sprintf(t.Picture, a.Percent, a.Level)
	return a, nil
}

func integer(b bool) int {
	if b {
		return 1
	}
	return 0
}
