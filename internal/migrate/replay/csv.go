package replay

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

var (
	errEmpty   = errors.New("the input is empty: its first line must name the columns, such as at_ns,key,max_burst,count,period")
	errLongRow = errors.New("a row is longer than 16 MiB; is a quote unclosed?")
)

// csvTrace reads CSV as encoding/csv does: it skips empty lines and turns CR LF into LF, even within quotes.
type csvTrace struct {
	name   string
	source *source
	csv    *csv.Reader
	line   int // where the last row begins
	header columns
}

func newCSVTrace(in *input, o Options) (*csvTrace, error) {
	t := &csvTrace{name: o.Name, source: in.source}
	t.csv = csv.NewReader(in.text)
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

func (t *csvTrace) bad(err error) error { return badAt(t.name, t.line, err) }
func (t *csvTrace) bytes() int64        { return t.source.bytes() }
