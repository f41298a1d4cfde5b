// Package patience lets tests wait for as long as anything moves, however slow or busy the machine is. A wait
// fails when this process and those that it started have done next to nothing for a minute. One that has work
// and does not end is for the -timeout of go test, which shows what all goroutines are at.
package patience

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Forever is longer than tests run, for what requires a time-out.
const Forever = 24 * time.Hour

const (
	// idleAtMost is how long nothing may move.
	idleAtMost = time.Minute
	// leastMoved is what all processes together use of a processor's minute if they do anything: idle
	// servers, and what asks them once a second, use less. Beside forty times the load that the machine has
	// processors for, those that work use more.
	leastMoved = 3 * time.Second
	// tick is how often it is looked. A late one counts once, as the machine may have stood still.
	tick = time.Second
)

// ErrIdle is why a wait ended.
var ErrIdle = fmt.Errorf("nothing has moved for %s", idleAtMost)

// Patience is one wait, and for one goroutine.
type Patience struct {
	cpuTime func() (time.Duration, bool) // nil for that of the processes

	looked time.Time
	used   time.Duration // when something moved last
	idle   time.Duration // since then
}

// Over reports whether nothing has moved for a minute. It is to be called every second or more often.
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
	ended := used < p.used // a process that others waited for
	if first || !known || ended || used-p.used >= leastMoved {
		p.used, p.idle = used, 0
		return false
	}
	p.idle += tick
	return p.idle >= idleAtMost
}

// Until waits until cond is true, and reports whether it is. It asks often at first, and at last once a
// second, so that asking does not pass for work.
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

// Receive waits for a value, or the channel's end, and reports whether it came.
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

// Context returns a context that ends when nothing has moved for a minute.
func Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		if Receive(ctx.Done()); ctx.Err() == nil {
			cancel(ErrIdle)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Conn is a connection whose reads and writes have patience. Deadlines that are set have no effect.
type Conn struct{ net.Conn }

// Read implements net.Conn.
func (c Conn) Read(b []byte) (n int, err error) {
	err = patiently(c.SetReadDeadline, func() (err error) {
		n, err = c.Conn.Read(b)
		return err
	})
	return n, err
}

// Write implements net.Conn.
func (c Conn) Write(b []byte) (n int, err error) {
	err = patiently(c.SetWriteDeadline, func() error {
		more, err := c.Conn.Write(b[n:])
		n += more
		return err
	})
	return n, err
}

// CloseWrite ends what is sent, on connections that have two halves.
func (c Conn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// patiently has an operation go on when its deadline has passed.
func patiently(setDeadline func(time.Time) error, operation func() error) error {
	for p := (Patience{}); ; {
		_ = setDeadline(time.Now().Add(tick)) // of a closed connection the operation says what is wrong
		if err := operation(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if p.Over() {
			return ErrIdle
		}
	}
}
