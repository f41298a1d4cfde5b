package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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

// columns holds the header's columns.
type columns struct {
	at, atNs, key   column
	limits          []column     // of the algorithm
	spec            limiter.Spec // limits holds its numbers
	windows         *windows     // of a quota; else nil
	quantity, debit column
	options         Options

	kept  []int // all columns except the results
	names []string
}

// column is a column of the trace, or its fallback.
type column struct {
	name     string
	at       int    // its place in a record; -1 if it is missing
	fallback string // for a missing column or an empty field; empty for none
}

// flag returns the flag that sets the fallback.
func (c *column) flag() string { return "--" + strings.ReplaceAll(c.name, "_", "-") }

func (c *column) text(record []string) string {
	if c.at >= 0 && record[c.at] != "" {
		return record[c.at]
	}
	return c.fallback
}

// filled returns a text that must not be empty.
func (c *column) filled(record []string) (string, error) {
	text := c.text(record)
	if text == "" {
		return "", fmt.Errorf("%s: the field is empty: fill it in or give %s", c.name, c.flag())
	}
	return text, nil
}

func (c *column) integer(record []string) (n int64, err error) {
	text, err := c.filled(record)
	if err == nil {
		n, err = parseInteger(text)
		err = inColumn(c.name, err)
	}
	return n, err
}

// yes reads 0 or 1, by default 0.
func (c *column) yes(record []string) (bool, error) {
	switch text := c.text(record); text {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	default:
		return false, fmt.Errorf("%s: %s is neither 0 nor 1", c.name, quoted(text))
	}
}

// columns returns the columns that a header may have.
func (o *Options) columns() columns {
	return columns{
		at: o.column("at"), atNs: o.column("at_ns"), key: o.column("key"), limits: o.limits(), spec: o.spec(), windows: newWindows(o),
		quantity: o.column("quantity"), debit: o.column("debit"), options: *o,
	}
}

func newColumns(header []string, o Options) (columns, error) {
	c := o.columns()
	all := []*column{&c.at, &c.atNs, &c.key, &c.quantity, &c.debit}
	for i := range c.limits {
		all = append(all, &c.limits[i])
	}
	if w := c.windows; w != nil {
		all = append(all, &w.every, &w.zone, &w.start, &w.epoch)
	}
	for i, name := range header {
		if slices.Contains(resultColumns(), name) {
			continue
		}
		c.kept = append(c.kept, i)
		c.names = append(c.names, name)
		at := slices.IndexFunc(all, func(c *column) bool { return c.name == name })
		if at < 0 {
			continue
		}
		if all[at].at >= 0 {
			return columns{}, fmt.Errorf("column %s appears twice", name)
		}
		all[at].at = i
	}
	return c, c.check()
}

func (c *columns) check() error {
	switch {
	case c.at.at < 0 && c.atNs.at < 0:
		return errors.New("no time column: the header must name at_ns (Unix nanoseconds) or at (RFC 3339 or Unix seconds); for a log that is not CSV, give --format")
	case c.at.at >= 0 && c.atNs.at >= 0:
		return errors.New("columns at and at_ns are both present: keep one")
	case c.key.at < 0:
		return errors.New("column key is missing: add it to the header")
	}
	if unset := c.unset(); unset != nil {
		return fmt.Errorf("column %s is missing: add it to the header or give %s", unset.name, unset.flag())
	}
	return nil
}

// unset returns the first column of the limit that is missing and has no fallback, or nil.
func (c *columns) unset() *column {
	required := c.limits
	if c.windows != nil {
		required = append(slices.Clip(required), c.windows.every)
	}
	for i, r := range required {
		if r.at < 0 && r.fallback == "" {
			return &required[i]
		}
	}
	return nil
}

// parse fills a row from a CSV record.
func (c *columns) parse(record []string, r *row) (err error) {
	if r.atNs, err = c.parseTime(record); err != nil {
		return err
	}
	r.key = record[c.key.at]
	limit, err := c.parseLimit(record)
	if err != nil {
		return err
	}
	if r.quantity, err = c.quantity.integer(record); err != nil {
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
		if limit.Numbers[i], err = c.limits[i].integer(record); err != nil {
			return limit, err
		}
	}
	if c.windows != nil {
		limit.Calendar, err = c.windows.calendar(record)
	}
	return limit, err
}

func (c *columns) parseTime(record []string) (int64, error) {
	if c.at.at >= 0 {
		atNs, err := parseTime(record[c.at.at])
		return atNs, inColumn("at", err)
	}
	atNs, err := parseInteger(record[c.atNs.at])
	return atNs, inColumn("at_ns", err)
}

func inColumn(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
