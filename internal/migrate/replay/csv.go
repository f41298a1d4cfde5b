package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"

	"cellserver/internal/limiter"
)

var (
	errEmpty   = errors.New("the input is empty: its first line must name the columns, such as at_ns,key,max_burst,count,period")
	errLongRow = errors.New("a row is longer than 16 MiB; is a quote unclosed?")
)

// csvTrace reads CSV as encoding/csv does: it skips empty lines and turns CR LF into LF, even within quotes.
type csvTrace struct {
	position // of the row's first line
	csv      *csv.Reader
	header   columns
}

func newCSVTrace(in *input, o Options) (*csvTrace, error) {
	t := &csvTrace{position: position{name: o.Name, source: in.source}, csv: csv.NewReader(in.text)}
	t.csv.ReuseRecord = true
	header, err := t.record()
	if errors.Is(err, errEnd) {
		return nil, fmt.Errorf("%s: %w", t.name, errEmpty)
	}
	if err != nil {
		return nil, err
	}
	t.header, err = newColumns(header, o)
	return t, t.bad(err)
}

func (t *csvTrace) columns() []string { return t.header.names }

func (t *csvTrace) read(r *row) error {
	record, err := t.record()
	if err != nil {
		return err
	}
	return t.bad(t.header.parse(record, r))
}

// record returns the next record, valid until the following call.
func (t *csvTrace) record() ([]string, error) {
	t.source.leftBytes = maxRowBytes
	record, err := t.csv.Read()
	var syntax *csv.ParseError
	switch {
	case err == nil:
		t.line, _ = t.csv.FieldPos(0)
		return record, nil
	case err == io.EOF: // not errors.Is: a wrapped io.EOF is a failure
		return nil, errEnd
	case errors.As(err, &syntax):
		t.line = syntax.StartLine
		return nil, t.bad(syntaxError(syntax, len(record), t.csv.FieldsPerRecord))
	default:
		return nil, fmt.Errorf("%s: read after line %d: %w", t.name, t.line, err)
	}
}

func syntaxError(e *csv.ParseError, fields, columns int) error {
	switch {
	case errors.Is(e.Err, csv.ErrFieldCount):
		return fmt.Errorf("the row has %d fields, the header %d", fields, columns)
	case e.Line > e.StartLine:
		return fmt.Errorf("%w (the row continues to line %d)", e.Err, e.Line)
	default:
		return e.Err
	}
}

// resultColumns are appended by a replay and replace the trace's columns of the same names.
func resultColumns() []string {
	return []string{"limited", "limit", "remaining", "retry_after", "reset_after"}
}

// columns holds the header's column indexes; -1 for a missing one.
type columns struct {
	at, atNs int // one of them is -1
	key      int
	limits   []number     // of the algorithm
	spec     limiter.Spec // limits holds its numbers
	quantity number
	windows  *windows // of a quota; else nil
	debit    text
	options  Options

	kept  []int // all columns except the results
	names []string
}

// number is an integer column, or its fallback.
type number struct {
	name, flag string
	column     int
	fallback   *int64
}

func newColumns(header []string, o Options) (columns, error) {
	quantity := o.Quantity
	if quantity == nil {
		one := int64(1)
		quantity = &one
	}
	c := columns{
		at: -1, atNs: -1, key: -1, options: o, limits: o.limits(), spec: o.spec(), quantity: number{"quantity", "--quantity", -1, quantity},
		debit: yesText("debit", o.Debit),
	}
	known := map[string]*int{"at": &c.at, "at_ns": &c.atNs, "key": &c.key, "quantity": &c.quantity.column, "debit": &c.debit.column}
	for i := range c.limits {
		known[c.limits[i].name] = &c.limits[i].column
	}
	if c.spec.Kind == limiter.Quota {
		c.windows = newWindows(&o)
		for _, t := range c.windows.columns() {
			known[t.name] = &t.column
		}
	}
	for i, name := range header {
		if slices.Contains(resultColumns(), name) {
			continue
		}
		c.kept = append(c.kept, i)
		c.names = append(c.names, name)
		column := known[name]
		if column == nil {
			continue
		}
		if *column >= 0 {
			return columns{}, fmt.Errorf("column %s appears twice", name)
		}
		*column = i
	}
	return c, c.check()
}

func (c *columns) check() error {
	switch {
	case c.at < 0 && c.atNs < 0:
		return errors.New("no time column: the header must name at_ns (Unix nanoseconds) or at (RFC 3339 or Unix seconds); for a log that is not CSV, give --format")
	case c.at >= 0 && c.atNs >= 0:
		return errors.New("columns at and at_ns are both present: keep one")
	case c.key < 0:
		return errors.New("column key is missing: add it to the header")
	}
	for _, n := range c.limits {
		if n.column < 0 && n.fallback == nil {
			return fmt.Errorf("column %s is missing: add it to the header or give %s", n.name, n.flag)
		}
	}
	if w := c.windows; w != nil && w.every.column < 0 && w.every.fallback == "" {
		return errors.New("column every is missing: add it to the header or give --every")
	}
	return nil
}

// parse fills a row from a CSV record.
func (c *columns) parse(record []string, r *row) (err error) {
	if r.atNs, err = c.parseTime(record); err != nil {
		return err
	}
	r.key = record[c.key]
	limit, err := c.parseLimit(record)
	if err != nil {
		return err
	}
	if r.quantity, err = c.quantity.parse(record); err != nil {
		return err
	}
	debits, err := c.debit.yes(record)
	if err == nil && debits {
		limit.Flags |= limiter.Debit
		err = c.options.checkDebit(r.quantity)
	}
	if err != nil {
		return err
	}
	if err = limit.Build(&r.rule); err != nil {
		return c.options.Algorithm.named(err)
	}
	for _, i := range c.kept {
		r.fields = append(r.fields, record[i])
	}
	return nil
}

func (c *columns) parseLimit(record []string) (limit limiter.Spec, err error) {
	limit = c.spec
	for i := range c.limits {
		if limit.Numbers[i], err = c.limits[i].parse(record); err != nil {
			return limit, err
		}
	}
	if c.windows != nil {
		limit.Calendar, err = c.windows.calendar(record)
	}
	return limit, err
}

func (c *columns) parseTime(record []string) (int64, error) {
	if c.at >= 0 {
		atNs, err := parseTime(record[c.at])
		return atNs, inColumn("at", err)
	}
	atNs, err := parseInteger(record[c.atNs])
	return atNs, inColumn("at_ns", err)
}

func (n *number) parse(record []string) (int64, error) {
	field := ""
	if n.column >= 0 {
		field = record[n.column]
	}
	if field != "" {
		v, err := parseInteger(field)
		return v, inColumn(n.name, err)
	}
	if n.fallback == nil {
		return 0, fmt.Errorf("%s: the field is empty: fill it in or give %s", n.name, n.flag)
	}
	return *n.fallback, nil
}

func inColumn(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
