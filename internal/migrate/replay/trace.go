package replay

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"time"

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

// skippable is a *rowError for which Options.SkipBad would have gone on.
type skippable struct{ *rowError }

// IsBadRow reports whether Options.SkipBad would have skipped the row of an error.
func IsBadRow(err error) bool { return errors.As(err, &skippable{}) }

// position is the place at which a trace is read.
type position struct {
	name   string
	line   int // of the last row
	source *source
}

func (p *position) bad(err error) error {
	if err == nil {
		return nil
	}
	return &rowError{name: p.name, line: p.line, err: err}
}

func (p *position) bytes() int64 { return p.source.counter.bytes }

// order sorts rows by time, stably. It holds only the rows of the window and reuses their memory.
type order struct {
	windowNs int64
	waiting  rowHeap
	free     []*row
	pushed   int64

	newestNs   int64 // of the newest row pushed
	releasedNs int64 // of the last row popped
}

func newOrder(window time.Duration) order {
	return order{windowNs: int64(window), newestNs: math.MinInt64, releasedNs: math.MinInt64}
}

// takeRow returns an empty row for push or recycle.
func (o *order) takeRow() *row {
	n := len(o.free)
	if n == 0 {
		return new(row)
	}
	r := o.free[n-1]
	o.free = o.free[:n-1]
	return r
}

// recycle takes back an unused row.
func (o *order) recycle(r *row) {
	clear(r.fields) // releases the text
	*r = row{fields: r.fields[:0]}
	o.free = append(o.free, r)
}

// push adds a row unless a later one was popped.
func (o *order) push(r *row) error {
	if r.atNs < o.releasedNs {
		late := time.Unix(0, o.newestNs).Sub(time.Unix(0, r.atNs)) // unlike int64 subtraction, Sub saturates
		return fmt.Errorf("out of order by %s: sort the trace, or give --reorder-window %[1]s or more", late)
	}
	o.pushed++
	r.place = o.pushed
	o.newestNs = max(o.newestNs, r.atNs)
	heap.Push(&o.waiting, r)
	return nil
}

// pop returns the oldest row once it is the window older than the newest, else nil.
func (o *order) pop() *row {
	if len(o.waiting) == 0 || o.waiting[0].atNs > o.readyNs() {
		return nil
	}
	r := heap.Pop(&o.waiting).(*row)
	o.releasedNs = r.atNs
	return r
}

// end makes all rows ready; no push follows.
func (o *order) end() { o.windowNs = 0 }

func (o *order) readyNs() int64 {
	if o.newestNs < math.MinInt64+o.windowNs {
		return math.MinInt64
	}
	return o.newestNs - o.windowNs
}

// rowHeap is a container/heap ordered by time, then by place.
type rowHeap []*row

func (h rowHeap) Len() int      { return len(h) }
func (h rowHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *rowHeap) Push(r any)   { *h = append(*h, r.(*row)) }

func (h rowHeap) Less(i, j int) bool {
	if h[i].atNs != h[j].atNs {
		return h[i].atNs < h[j].atNs
	}
	return h[i].place < h[j].place
}

func (h *rowHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return r
}
