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
	maxBatch  = 256 // keys that are read at once
	tickEvery = 20 * time.Millisecond
)

var (
	errUnseen = errors.New("MONITOR does not show what the second connection sends: is there a proxy between, or are these two servers?")
	errStep   = errors.New("MONITOR shows other reads than were sent: is the order of its lines not that of execution?")
	errSilent = errors.New("i/o timeout: a read was not answered")
	errEarly  = errors.New("the end came before it had answered: nothing was followed")
)

// follower is a Run.
type follower struct {
	options Options
	calls   *monitor.Calls
	known   *memory
	summary Summary

	state   *conn // the connection that reads keys
	token   string
	addr    string // of that connection, as MONITOR shows it; empty until it has
	db      uint16 // that is selected there
	lines   *lines
	replies <-chan reply
	failed  <-chan error // of a connection

	line    monitor.Line
	queue   []*key // to be read
	asked   []asked
	askedAt time.Time
	nextAsk time.Time
	ending  bool
}

// asked is a GET that MONITOR has not shown yet.
type asked struct {
	key     *key
	selects bool // a SELECT goes before it
}

func newFollower(o Options) *follower {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &follower{options: o, calls: monitor.NewCalls(o.Reading), known: newMemory(o.MaxBytes), token: rand.Text()}
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
			f.lines.took(line)
			if err := f.handle(line); err != nil {
				return err
			}
		case err := <-f.failed:
			return err
		case <-end:
			end, drained = nil, time.After(drainTimeout)
			f.state.add("PING", f.token) // what MONITOR shows before it is compared
			if err := f.state.flush(); err != nil {
				return err
			}
		case <-drained:
			return f.late()
		case <-tick.C:
			if f.addr == "" && time.Since(started) > f.options.Timeout {
				return errUnseen
			}
			if len(f.asked) > 0 && time.Since(f.askedAt) > f.options.Timeout {
				return errSilent
			}
			f.progress()
		}
		if err := f.ask(); err != nil {
			return err
		}
	}
	return nil
}

// late ends what was not done in time.
func (f *follower) late() error {
	if f.addr == "" {
		return errUnseen
	}
	for _, k := range f.queue {
		f.summary.Missed += int64(k.calls)
	}
	for _, a := range f.asked {
		f.summary.Missed += int64(a.key.calls)
	}
	if len(f.asked) > 0 && time.Since(f.askedAt) >= drainTimeout {
		return errSilent
	}
	return nil
}

// isDone reports whether all is compared that was called before the end.
func (f *follower) isDone() bool {
	return f.ending && len(f.queue) == 0 && len(f.asked) == 0
}

func (f *follower) progress() {
	if f.options.Progress != nil {
		f.options.Progress(f.summary)
	}
}

// connect begins the stream, and sends what shows where in it the other connection is.
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

// handle does what a line of MONITOR says.
func (f *follower) handle(text []byte) error {
	if text == nil { // too long to say which keys it changes
		f.known.forgetAll()
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
		f.count(&f.summary.Others)
		f.known.touch(f.line.DB, args)
	case monitor.Writes:
		f.known.touch(f.line.DB, args)
	case monitor.Flushes:
		f.known.forgetAll()
	case monitor.Reads:
	}
	return nil
}

// count counts what happens before the end.
func (f *follower) count(counter *int64) {
	if !f.ending {
		*counter++
	}
}

// own notes where in the stream a command of the follower's is.
func (f *follower) own(args [][]byte) error {
	switch {
	case glob.IsFolded(args[0], "get"):
		return f.read(args)
	case glob.IsFolded(args[0], "ping"):
		f.ending = true
		_, err := f.reply()
		return err
	}
	return nil // SELECT, whose reply is read with that of the GET behind it
}

// read compares what a GET has returned with what it should, as of this place in the stream.
func (f *follower) read(args [][]byte) error {
	if len(f.asked) == 0 || len(args) != 2 || string(args[1]) != f.asked[0].key.name || f.line.DB != f.asked[0].key.db {
		return errStep
	}
	a := f.asked[0]
	f.asked = f.asked[1:]
	if a.selects {
		if r, err := f.reply(); err != nil || r.err != nil {
			return errors.Join(err, r.err)
		}
	}
	r, err := f.reply()
	if err != nil {
		return err
	}
	a.key.waiting = false
	return f.compare(a.key, r)
}

// reply waits for the next reply, which the source has sent when MONITOR shows what it is to.
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

// ask sends GETs for the keys that were called since they were last read. There is one batch under way at a time, so a key that
// is called often is read once for many calls.
func (f *follower) ask() error {
	now := time.Now()
	if len(f.asked) > 0 || len(f.queue) == 0 || now.Before(f.nextAsk) {
		return nil
	}
	n := min(len(f.queue), maxBatch)
	if rate := f.options.Rate; rate > 0 {
		n = min(n, max(1, int(int64(rate)*int64(tickEvery)/int64(time.Second))))
		f.nextAsk = now.Add(time.Duration(n) * time.Second / time.Duration(rate))
	}
	f.asked = f.asked[:0]
	for _, k := range f.queue[:n] {
		selects := k.db != f.db
		if selects {
			f.state.add("SELECT", strconv.Itoa(int(k.db)))
			f.db = k.db
		}
		f.state.add("GET", k.name)
		f.asked = append(f.asked, asked{k, selects})
	}
	f.queue = append(f.queue[:0], f.queue[n:]...)
	f.askedAt = now
	return f.state.flush()
}
