package replay

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"cellserver/internal/limiter"
)

const (
	bufferBytes = 64 << 10
	// maxRowBytes bounds the memory of one row: a quote that is never closed makes all that follows one field.
	maxRowBytes = 16 << 20
)

var (
	errEmpty   = errors.New("the input is empty: its first line must name the columns, such as at_ns,key,max_burst,count,period")
	errEnd     = errors.New("the trace has no more rows")
	errLongRow = errors.New("a row is longer than 16 MiB: is a quote not closed?")
)

// trace reads rows from CSV as encoding/csv does: empty lines are skipped, and CR LF becomes LF, in quotes too.
type trace struct {
	name    string
	source  *source
	csv     *csv.Reader
	line    int // where the last row read begins
	columns columns
}

// row is one request.
type row struct {
	atNs     int64
	place    int64 // in the input, among the rows that were pushed
	key      string
	rule     limiter.Rule
	quantity int64
	fields   []string // copied to the output
}

// rowError says what is wrong with one row. Other errors end the trace.
type rowError struct {
	name string
	line int
	err  error
}

func (e *rowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.name, e.line, e.err) }
func (e *rowError) Unwrap() error { return e.err }

func newTrace(in io.Reader, o Options) (*trace, error) {
	t := &trace{name: o.Name, source: &source{in: in, leftBytes: maxRowBytes}}
	buffered := bufio.NewReaderSize(t.source, bufferBytes)
	skipByteOrderMark(buffered)
	t.csv = csv.NewReader(buffered)
	t.csv.ReuseRecord = true
	header, err := t.record()
	if errors.Is(err, errEnd) {
		return nil, fmt.Errorf("%s: %w", t.name, errEmpty)
	}
	if err != nil {
		return nil, err
	}
	t.columns, err = newColumns(header, o)
	return t, t.bad(err)
}

func skipByteOrderMark(r *bufio.Reader) {
	mark := []byte("\ufeff")
	for {
		if b, _ := r.Peek(len(mark)); !bytes.Equal(b, mark) { // the next read returns the error again
			return
		}
		_, _ = r.Discard(len(mark))
	}
}

// read fills in the next row. The error is errEnd after the last row, and a *rowError if reading can continue.
func (t *trace) read(r *row) error {
	record, err := t.record()
	if err != nil {
		return err
	}
	return t.bad(t.columns.parse(record, r))
}

// record returns the next record, which is valid until the following call.
func (t *trace) record() ([]string, error) {
	t.source.leftBytes = maxRowBytes
	record, err := t.csv.Read()
	var syntax *csv.ParseError
	switch {
	case err == nil:
		t.line, _ = t.csv.FieldPos(0)
		return record, nil
	case err == io.EOF: // compared directly, because a wrapped io.EOF is a failure
		return nil, errEnd
	case errors.As(err, &syntax):
		t.line = syntax.StartLine
		return nil, t.bad(syntaxError(syntax, len(record), t.csv.FieldsPerRecord))
	default:
		return nil, fmt.Errorf("%s: read after line %d: %w", t.name, t.line, err)
	}
}

// syntaxError describes a csv error without repeating the row's line number.
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

// bad turns an error into one of the last row read; nil stays nil.
func (t *trace) bad(err error) error {
	if err == nil {
		return nil
	}
	return &rowError{name: t.name, line: t.line, err: err}
}

func (t *trace) bytes() int64 { return t.source.bytes }

// source counts the bytes read, and limits the length of a row. An error is returned again by later reads, because csv
// may report a malformed row instead of it and continue reading.
type source struct {
	in        io.Reader
	bytes     int64
	leftBytes int // that the current row may still take, give or take a buffer
	err       error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err == nil && s.leftBytes <= 0 {
		s.err = errLongRow
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(p)
	s.bytes += int64(n)
	s.leftBytes -= n
	s.err = err
	return n, err
}
