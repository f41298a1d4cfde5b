package replay

import (
	"errors"
	"fmt"

	"cellserver/internal/limiter"
)

// trace reads the rows of a format.
type trace interface {
	// columns are the names of the fields of its rows.
	columns() []string
	// read fills in the next row. The error is errEnd after the last row, and a *rowError if reading can continue.
	read(r *row) error
	// bad turns an error into one of the last row read; nil stays nil.
	bad(err error) error
	// bytes is how many were read, as they are in the file.
	bytes() int64
	// passedOver is how many calls of limiters were read that no trace can decide.
	passedOver() int64
}

var errEnd = errors.New("the trace has no more rows")

// row is one request.
type row struct {
	atNs     int64
	place    int64 // in the input, among the rows that were pushed
	db       uint16
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

// badAt makes an error one of a line; nil stays nil.
func badAt(name string, line int, err error) error {
	if err == nil {
		return nil
	}
	return &rowError{name: name, line: line, err: err}
}
