// Package replay runs a CSV trace of requests through the store on the trace's own clock: what a row is answered
// depends on the rows before it, and on nothing else.
//
// A replay runs in its caller's goroutine and shares nothing, so any number of them may run at once. Its memory
// follows the live keys and the rows in the reorder window, and never the length of the trace.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// Options says how a trace is to be read. The zero Options wants every column there and every row right.
type Options struct {
	Name    string // of the trace, for errors
	Reading funnel.Reading

	// These stand in for a column that is missing or a field that is empty; nil is not set. A Quantity that is
	// not set is 1.
	MaxBurst, Count, Period, Quantity *int64

	ReorderWindow time.Duration // how far a row may be behind the newest one
	SkipBad       bool          // count bad rows and go on, instead of ending with the first

	// Progress is called every few thousand rows with how many rows and bytes were read; nil for none.
	Progress func(rows, bytes int64)
}

// Skipped is what became of the bad rows.
type Skipped struct {
	Rows  int64
	First error // what was wrong with the first of them, nil if there was none
}

// Rows writes a trace's rows to out in the order of time, each with its answer appended. When it ends in an
// error, all rows before that were answered and written, unless ctx is done or out is what failed.
func Rows(ctx context.Context, in io.Reader, out io.Writer, o Options) (Skipped, error) {
	t, err := newTrace(in, o)
	if err != nil {
		return Skipped{}, fmt.Errorf("replay: %w", err)
	}
	w := newRowWriter(out)
	if err := w.header(t.columns.names); err != nil {
		return Skipped{}, fmt.Errorf("replay: %w", err)
	}
	p := newPlayer(t, w, o)
	err = p.run(ctx)
	if flushErr := w.flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		return p.skipped, fmt.Errorf("replay: %w", err)
	}
	return p.skipped, nil
}

// Summarize adds up what a trace's rows are answered, and finds the keys that are denied most.
// With an error, it is the summary of the rows before that.
func Summarize(ctx context.Context, in io.Reader, o Options) (*Summary, error) {
	s := newSummary()
	t, err := newTrace(in, o)
	if err != nil {
		return s, fmt.Errorf("replay: %w", err)
	}
	p := newPlayer(t, s, o)
	err = p.run(ctx)
	s.Skipped = p.skipped
	if err != nil {
		return s, fmt.Errorf("replay: %w", err)
	}
	return s, nil
}

const (
	progressRows = 4096
	sweepRows    = 1024 // rows between two sweeps
	// A sweep is so many steps, and again so many, for as long as more than one in ten of the entries it saw
	// last had expired.
	sweepSteps = 64
)

// sink takes the answered rows. It does not keep them.
type sink interface {
	row(r *row, result funnel.Result) error
}

// player answers the rows of a trace, each at its own time.
type player struct {
	trace   *trace
	sink    sink
	options Options
	order   order
	store   *shard.Store
	sweeper *shard.Sweeper
	batch   [1]store.Request

	read, answered int64 // rows
	skipped        Skipped
}

func newPlayer(t *trace, s sink, o Options) *player {
	states := shard.New()
	return &player{
		trace: t, sink: s, options: o, order: newOrder(o.ReorderWindow),
		store: states, sweeper: shard.NewSweeper(states),
	}
}

func (p *player) run(ctx context.Context) error {
	err := p.readAll(ctx)
	p.order.end()
	if lastErr := p.answerReady(ctx); err == nil {
		err = lastErr
	}
	return err
}

func (p *player) readAll(ctx context.Context) error {
	for {
		var bad *rowError
		err := p.readOne()
		switch {
		case errors.Is(err, errEnd):
			return nil
		case p.options.SkipBad && errors.As(err, &bad):
			p.skip(bad)
		case err != nil:
			return err
		}
		if err := p.answerReady(ctx); err != nil {
			return err
		}
		p.read++
		if p.options.Progress != nil && p.read%progressRows == 0 {
			p.options.Progress(p.read, p.trace.bytes())
		}
	}
}

func (p *player) readOne() error {
	r := p.order.blank()
	err := p.trace.read(r)
	if err == nil {
		err = p.trace.bad(p.order.push(r))
	}
	if err != nil {
		p.order.recycle(r)
	}
	return err
}

func (p *player) skip(bad *rowError) {
	if p.skipped.Rows == 0 {
		p.skipped.First = bad
	}
	p.skipped.Rows++
}

// answerReady answers the rows that no row still to come may go before.
func (p *player) answerReady(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped: %w", err)
		}
		r := p.order.pop()
		if r == nil {
			return nil
		}
		if err := p.answer(r); err != nil {
			return err
		}
		p.order.recycle(r)
	}
}

func (p *player) answer(r *row) error {
	q := &p.batch[0]
	q.Key.Name = append(q.Key.Name[:0], r.key...)
	q.Limit, q.Quantity = r.limit, r.quantity
	decide.One(p.store, r.atNs, &p.batch)
	p.answered++
	if p.answered%sweepRows == 0 {
		p.sweep(r.atNs)
	}
	return p.sink.row(r, q.Result)
}

// sweep removes expired keys faster than rows can add them, also where many expire at once.
func (p *player) sweep(nowNs int64) {
	for {
		var seen, removed int
		for range sweepSteps {
			s, r := p.sweeper.Step(nowNs)
			seen, removed = seen+s, removed+r
		}
		if removed*10 <= seen {
			return
		}
	}
}
