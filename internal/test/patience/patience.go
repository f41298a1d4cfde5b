// Package patience lets tests wait for as long as anything moves, on however slow a machine. A wait fails
// when this process and its children have used almost no CPU time for a minute. Work without an end is left
// to go test -timeout, which prints all goroutines.
package patience

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Forever exceeds every test, for functions that require a time-out.
const Forever = 24 * time.Hour

const (
	idleAtMost = time.Minute
	// leastMoved is the CPU time a minute of processes that work. Idle servers and a caller that asks once a
	// second use less; at forty times the machine's capacity, working processes use more.
	leastMoved = 3 * time.Second
	// tick is the interval between looks. A late look counts once: the machine may have been suspended.
	tick = time.Second
)

// ErrIdle reports a minute without work.
var ErrIdle = fmt.Errorf("nothing has moved for %s", idleAtMost)

// Patience is one wait. It is for one goroutine.
type Patience struct {
	cpuTime func() (time.Duration, bool) // nil for the processes' own

	looked time.Time
	used   time.Duration // at the last movement
	idle   time.Duration // since then
}

// Over reports whether nothing has moved for a minute. Call it at least every second.
func (p *Patience) Over() bool {
	now := time.Now()
	if !p.looked.IsZero() && now.Sub(p.looked) < tick {
		return p.idle >= idleAtMost
	}
	first := p.looked.IsZero()
	p.looked = now
	read := p.cpuTime
	if read == nil {
		read = processes
	}
	used, known := read()
	ended := used < p.used // another goroutine waited for a process
	if first || !known || ended || used-p.used >= leastMoved {
		p.used, p.idle = used, 0
		return false
	}
	p.idle += tick
	return p.idle >= idleAtMost
}

// Until waits for cond and reports its result. It asks less and less often, up to once a second, so that
// asking does not count as work.
func Until(cond func() bool) bool {
	var p Patience
	for pause := 2 * time.Millisecond; !cond(); pause = min(pause+pause/8, tick) {
		if p.Over() {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// Receive waits for a value or the channel's end, and reports whether either came.
func Receive[T any](from <-chan T) (value T, ok bool) {
	var p Patience
	for ticks := time.NewTicker(tick); ; {
		select {
		case value = <-from:
			return value, true
		case <-ticks.C:
			if p.Over() {
				return value, false
			}
		}
	}
}

// Context returns a context that ends after a minute without movement.
func Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		if Receive(ctx.Done()); ctx.Err() == nil {
			cancel(ErrIdle)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Conn is a connection with patient reads and writes. It ignores deadlines.
type Conn struct{ net.Conn }

func (c Conn) Read(b []byte) (n int, err error) {
	err = patiently(c.SetReadDeadline, func() (err error) {
		n, err = c.Conn.Read(b)
		return err
	})
	return n, err
}

func (c Conn) Write(b []byte) (n int, err error) {
	err = patiently(c.SetWriteDeadline, func() error {
		more, err := c.Conn.Write(b[n:])
		n += more
		return err
	})
	return n, err
}

// CloseWrite closes the sending half.
func (c Conn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// patiently repeats an operation that its deadline has interrupted.
func patiently(setDeadline func(time.Time) error, operation func() error) error {
	for p := (Patience{}); ; {
		_ = setDeadline(time.Now().Add(tick)) // the operation reports a closed connection
		if err := operation(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if p.Over() {
			return ErrIdle
		}
	}
}
