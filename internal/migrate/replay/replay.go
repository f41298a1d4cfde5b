// Package replay runs a trace of requests (CSV, MONITOR's output or an access log) through the store, with
// the trace's times as the clock: each answer depends only on the rows before it.
//
// A replay shares nothing. Its memory depends on the live keys and the rows in the reorder window, not on the
// length of the trace.
package replay

import (
	"bufio"
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

// Options says how to read a trace. The zero Options requires all columns of a funnel and stops at a bad row.
type Options struct {
	Name         string // for errors
	Format       Format
	KeyFields    []string // of an access log, which make the key; none for the client's address
	TimeField    string   // of an access log in JSON; empty for any of timeFields
	Algorithm    Algorithm
	Reading      funnel.Reading // of max_burst
	Milliseconds bool           // periods and answers in milliseconds, not seconds
	CountDenied  bool           // windows count denied requests
	Debit        bool           // default of the column debit: all units are charged, also beyond the limit

	// Defaults for missing columns and empty fields; nil for none, but 1 for Quantity.
	MaxBurst, Count, Capacity, RefillCount, MaxCount, Period, Quantity *int64

	// Defaults of a quota's windows, as in CL.QUOTA.
	Every, TimeZone, Start string
	Epoch                  bool

	ReorderWindow time.Duration // most that a row may be older than the newest
	SkipBad       bool          // count bad rows instead of stopping at the first

	// Progress, if not nil, receives the rows and bytes read every few thousand rows.
	Progress func(rows, bytes int64)
}

// Skipped counts rows and calls without an answer.
type Skipped struct {
	Rows  int64
	First error // of the first bad row, or nil
	// Calls of limiters that no trace can decide, such as CL.BTHROTTLE.
	Calls int64
}

// Rows writes the rows to out in order of time, each with its answer. On an error all earlier rows were
// answered and written, unless ctx ended or writing failed.
func Rows(ctx context.Context, in io.Reader, out io.Writer, o Options) (Skipped, error) {
	return play(ctx, in, newRowWriter(out), o)
}

// RowsInJSON is like Rows but writes one JSON document. Its member complete is false after an error.
func RowsInJSON(ctx context.Context, in io.Reader, out io.Writer, o Options) (Skipped, error) {
	return play(ctx, in, &jsonWriter{out: bufio.NewWriterSize(out, bufferBytes)}, o)
}

// Summarize returns the totals and the most limited keys. On an error it covers the earlier rows.
func Summarize(ctx context.Context, in io.Reader, o Options) (*Summary, error) {
	s := newSummary()
	_, err := play(ctx, in, s, o)
	return s, err
}

func play(ctx context.Context, in io.Reader, to sink, o Options) (skipped Skipped, err error) {
	t, err := open(in, o)
	if err == nil {
		err = to.header(t.columns())
	}
	if err == nil {
		p := newPlayer(t, to, o)
		err = p.run(ctx)
		skipped = p.skipped
	}
	if ended := to.end(skipped, err == nil); err == nil {
		err = ended
	}
	if err != nil {
		err = fmt.Errorf("replay: %w", err)
	}
	return skipped, err
}

const (
	progressRows = 4096
	sweepRows    = 1024 // rows between sweeps
	// A sweep repeats this many steps while more than a tenth of the entries seen had expired.
	sweepSteps = 64
)

// sink receives the answered rows and does not retain them.
type sink interface {
	header(columns []string) error
	row(r *row, result funnel.Result) error
	// end completes the output, even after an error; complete is false then.
	end(skipped Skipped, complete bool) error
}

// player answers rows, each at its own time.
type player struct {
	trace   trace
	sink    sink
	options Options
	order   order
	store   *shard.Store
	sweeper *shard.Sweeper
	batch   [1]store.Request

	read, answered int64 // rows
	skipped        Skipped
}

func newPlayer(t trace, s sink, o Options) *player {
	states := shard.New()
	return &player{trace: t, sink: s, options: o, order: newOrder(o.ReorderWindow), store: states, sweeper: shard.NewSweeper(states)}
}

func (p *player) run(ctx context.Context) error {
	err := p.readAll(ctx)
	if t, ok := p.trace.(*monitorTrace); ok {
		p.skipped.Calls = t.skipped
	}
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
			if p.skipped.Rows++; p.skipped.Rows == 1 {
				p.skipped.First = bad
			}
		case errors.As(err, &bad):
			return skippable{bad}
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
	r := p.order.takeRow()
	err := p.trace.read(r)
	if err == nil {
		err = p.trace.bad(p.order.push(r))
	}
	if err != nil {
		p.order.recycle(r)
	}
	return err
}

// answerReady answers the rows that no later input can precede.
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
	q.Key.DB, q.Key.Name = r.db, append(q.Key.Name[:0], r.key...)
	q.Rule, q.Quantity = r.rule, r.quantity
	decide.One(p.store, r.atNs, &p.batch)
	if q.Err != nil {
		return fmt.Errorf("key %s: %w", quoted(r.key), q.Err)
	}
	p.answered++
	if p.answered%sweepRows == 0 {
		p.sweep(r.atNs)
	}
	return p.sink.row(r, q.Result)
}

// sweep removes expired keys faster than rows add them, even if many expire at once.
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
