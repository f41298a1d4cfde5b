package replay

import (
	"errors"
	"fmt"

	"cellserver/internal/limiter"
)

type trace interface {
	// columns returns the names of the rows' fields.
	columns() []string
	// read fills the next row. It returns errEnd after the last row, and a *rowError if reading can continue.
	read(r *row) error
	// bad attributes an error to the last row; nil stays nil.
	bad(err error) error
	// bytes returns how much of the file was read.
	bytes() int64
	// passedOver returns the number of calls that no trace can decide.
	passedOver() int64
}

var errEnd = errors.New("the trace has no more rows")

type row struct {
	atNs     int64
	place    int64 // among the pushed rows
	db       uint16
	key      string
	rule     limiter.Rule
	quantity int64
	fields   []string // copied to the output
}

// rowError is an error of one row. Others end the trace.
type rowError struct {
	name string
	line int
	err  error
}

func (e *rowError) Error() string { return fmt.Sprintf("%s:%d: %v", e.name, e.line, e.err) }
func (e *rowError) Unwrap() error { return e.err }

// badAt attributes an error to a line; nil stays nil.
func badAt(name string, line int, err error) error {
	if err == nil {
		return nil
	}
	return &rowError{name: name, line: line, err: err}
}
