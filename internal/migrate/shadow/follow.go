package shadow

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"cellserver/internal/migrate/monitor"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

const (
	maxBatch  = 256 // keys per read
	tickEvery = 20 * time.Millisecond
)

var (
	errUnseen = errors.New("MONITOR does not show the second connection: is there a proxy, or are these two servers?")
	errStep   = errors.New("MONITOR shows reads out of order: does it not show calls in order of execution?")
	errSilent = errors.New("i/o timeout: a read was not answered")
	errEarly  = errors.New("ended before it answered: nothing was followed")
)

// follower is the state of a Run.
type follower struct {
	options Options
	calls   *monitor.Calls
	keys    *memory
	summary Summary

	state   *conn // reads keys
	token   string
	addr    string // of state, as MONITOR shows it; empty until then
	db      uint16 // selected on state
	lines   *lines
	replies <-chan reply
	failed  <-chan error // a connection's error

	line     monitor.Line
	queue    []*key // keys to read
	pending  []pendingGet
	askedAt  time.Time
	nextAsk  time.Time
	isEnding bool
}

// pendingGet is a GET not yet shown by MONITOR.
type pendingGet struct {
	key       *key
	hasSelect bool // preceded by a SELECT
}

func newFollower(o Options) *follower {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &follower{options: o, calls: monitor.NewCalls(o.Reading), keys: newMemory(o.MaxBytes), token: rand.Text()}
}

func (f *follower) run(ctx context.Context) error {
	connections, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := f.connect(ctx, connections); err != nil {
		if ctx.Err() != nil {
			return errEarly
		}
		return err
	}
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	end, drained := ctx.Done(), (<-chan time.Time)(nil)
	started := time.Now()
	for !f.isDone() {
		select {
		case line := <-f.lines.c:
			f.lines.noteTaken(line)
			if err := f.handle(line); err != nil {
				return err
			}
		case err := <-f.failed:
			return err
		case <-end:
			end, drained = nil, time.After(f.options.Timeout/2)
			f.state.add("PING", f.token) // everything before it in MONITOR is compared
			if err := f.state.flush(); err != nil {
				return err
			}
		case <-drained:
			return f.late()
		case <-tick.C:
			if f.addr == "" && time.Since(started) > f.options.Timeout {
				return errUnseen
			}
			if len(f.pending) > 0 && time.Since(f.askedAt) > f.options.Timeout {
				return errSilent
			}
			if f.options.Progress != nil {
				f.options.Progress(f.summary)
			}
		}
		if err := f.ask(); err != nil {
			return err
		}
	}
	return nil
}

// late counts the calls whose keys were not read in time.
func (f *follower) late() error {
	if f.addr == "" {
		return errUnseen
	}
	for _, k := range f.queue {
		f.summary.Missed += int64(k.calls)
	}
	for _, a := range f.pending {
		f.summary.Missed += int64(a.key.calls)
	}
	if len(f.pending) > 0 && time.Since(f.askedAt) >= f.options.Timeout/2 {
		return errSilent
	}
	return nil
}

// isDone reports whether every call before the end is compared.
func (f *follower) isDone() bool {
	return f.isEnding && len(f.queue) == 0 && len(f.pending) == 0
}

// connect starts MONITOR and sends a PING that identifies the other connection in it.
func (f *follower) connect(ctx, connections context.Context) (err error) {
	stream, err := f.options.Source.dial(ctx, f.options.Timeout)
	if err != nil {
		return err
	}
	context.AfterFunc(connections, func() { _ = stream.nc.Close() })
	if f.state, err = f.options.Source.dial(ctx, f.options.Timeout); err != nil {
		return err
	}
	context.AfterFunc(connections, func() { _ = f.state.nc.Close() })
	if err := stream.call(ctx, "MONITOR"); err != nil {
		return err
	}
	if err := f.state.call(ctx, "PING", f.token); err != nil {
		return err
	}
	queue, replies, failed := newLines(), make(chan reply, 2*maxBatch), make(chan error, 2)
	f.lines, f.replies, f.failed = queue, replies, failed
	go func() { failed <- queue.fill(connections, stream) }()
	go func() { failed <- f.state.replies(connections, replies) }()
	return nil
}

func (f *follower) handle(text []byte) error {
	if text == nil { // its keys are unknown
		f.keys.forgetAll()
		return nil
	}
	if err := f.line.Parse(text); err != nil {
		return fmt.Errorf("%w: it shows %s", err, resp.Printable(text))
	}
	args := f.line.Args
	switch {
	case f.addr == "":
		if len(args) == 2 && string(args[1]) == f.token {
			f.addr = f.line.Client
			if f.options.Following != nil {
				f.options.Following()
			}
		}
		return nil
	case f.line.Client == f.addr:
		return f.own(args)
	}
	use, name := f.calls.Use(args)
	switch use {
	case monitor.Decides:
		f.call(name)
	case monitor.Limits:
		f.count(&f.summary.OtherKinds)
		f.keys.touch(f.line.DB, args)
	case monitor.Writes:
		f.keys.touch(f.line.DB, args)
	case monitor.Flushes:
		f.keys.forgetAll()
	case monitor.Reads:
	}
	return nil
}

// count counts what precedes the end.
func (f *follower) count(counter *int64) {
	if !f.isEnding {
		*counter++
	}
}

// own handles the follower's own commands in the stream.
func (f *follower) own(args [][]byte) error {
	switch {
	case glob.IsFolded(args[0], "get"):
		return f.read(args)
	case glob.IsFolded(args[0], "ping"):
		f.isEnding = true
		_, err := f.reply()
		return err
	}
	return nil // SELECT, whose reply is read with the next GET's
}

// read compares a GET's value with the expected state at this place in the stream.
func (f *follower) read(args [][]byte) error {
	if len(f.pending) == 0 || len(args) != 2 || string(args[1]) != f.pending[0].key.name || f.line.DB != f.pending[0].key.db {
		return errStep
	}
	a := f.pending[0]
	f.pending = f.pending[1:]
	if a.hasSelect {
		if r, err := f.reply(); err != nil || r.err != nil {
			return errors.Join(err, r.err)
		}
	}
	r, err := f.reply()
	if err != nil {
		return err
	}
	f.keys.read(a.key)
	return f.compare(a.key, r)
}

// reply waits for a reply that the source has sent already, as MONITOR shows its command.
func (f *follower) reply() (reply, error) {
	select {
	case r := <-f.replies:
		return r, nil
	case err := <-f.failed:
		return reply{}, err
	case <-time.After(f.options.Timeout):
		return reply{}, errSilent
	}
}

// ask sends GETs for the queued keys, one batch at a time: a busy key is read once for many calls.
func (f *follower) ask() error {
	now := time.Now()
	if len(f.pending) > 0 || len(f.queue) == 0 || now.Before(f.nextAsk) {
		return nil
	}
	n := min(len(f.queue), maxBatch)
	if rate := f.options.Rate; rate > 0 {
		n = min(n, max(1, int(int64(rate)*int64(tickEvery)/int64(time.Second))))
		f.nextAsk = now.Add(time.Duration(n) * time.Second / time.Duration(rate))
	}
	f.pending = f.pending[:0]
	for _, k := range f.queue[:n] {
		hasSelect := k.db != f.db
		if hasSelect {
			f.state.add("SELECT", strconv.Itoa(int(k.db)))
			f.db = k.db
		}
		f.state.add("GET", k.name)
		f.pending = append(f.pending, pendingGet{k, hasSelect})
	}
	f.queue = append(f.queue[:0], f.queue[n:]...)
	f.askedAt = now
	return f.state.flush()
}
