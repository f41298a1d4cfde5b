// Package loops drives connections from a few event loops over epoll, on Linux. A driver is safe for
// concurrent use; a connection belongs to its loop's goroutine.
package loops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"cellserver/internal/edge/server/conn"
	"cellserver/internal/wire/peer"
)

// driver is the driver that serves connections from a few event loops. Connections that it cannot take, those
// without a descriptor of their own, go to another driver.
type driver struct {
	all    []*loop
	others conn.Driver
	wg     sync.WaitGroup
}

// New returns a driver of n loops, or the other one where they cannot be made.
func New(h *conn.Host, n int, others conn.Driver) conn.Driver {
	d := &driver{others: others}
	for range n {
		l, err := newLoop(h)
		if err != nil {
			h.Log.Error("cannot start the event loops; each client gets a goroutine instead", "error", err,
				"hint", "where it says too many open files: raise the limit (ulimit -n)")
			for _, l := range d.all {
				l.poll.close()
			}
			return others
		}
		d.all = append(d.all, l)
	}
	for _, l := range d.all {
		d.wg.Go(l.run)
	}
	return d
}

func (d *driver) Serve(nc net.Conn, p peer.Peer) {
	fd, err := takeDescriptor(nc)
	if err != nil {
		d.others.Serve(nc, p)
		return
	}
	least := d.all[0]
	for _, l := range d.all[1:] {
		if l.load.Load() < least.load.Load() {
			least = l
		}
	}
	least.load.Add(1)
	c := newConnection(least, fd, p)
	_ = nc.Close() // the descriptor that c has stays open
	if !least.inbox.add(c) {
		c.refuse()
	}
}

// takeDescriptor returns a descriptor of nc's socket of its own, so that Go's runtime does not poll it as well.
func takeDescriptor(nc net.Conn) (fd int, err error) {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return -1, errors.ErrUnsupported // such as TLS, which is more than its socket
	}
	raw, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	err = raw.Control(func(own uintptr) {
		fd, dupErr = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	})
	return fd, errors.Join(err, dupErr)
}

func (d *driver) LimitsChanged() {
	for _, l := range d.all {
		l.inbox.limitsChanged()
	}
}

func (d *driver) Traffic() conn.Traffic {
	sum := d.others.Traffic()
	for _, l := range d.all {
		sum.Add(conn.Traffic{Received: l.received.Load(), Sent: l.sent.Load()})
	}
	return sum
}

func (d *driver) Shutdown(ctx context.Context) error {
	for _, l := range d.all {
		l.inbox.drain()
	}
	err := d.others.Shutdown(ctx)
	if conn.WaitOrDone(ctx, &d.wg) {
		return err
	}
	for _, l := range d.all {
		l.inbox.end()
	}
	if conn.WaitAtLast(&d.wg) {
		return cmp.Or(err, ctx.Err())
	}
	var left []string
	for i, l := range d.all {
		if !l.inbox.isClosed() {
			left = append(left, d.loopName(i))
		}
	}
	if errors.Is(err, conn.ErrStuck) {
		return fmt.Errorf("%w, %s", err, strings.Join(left, ", "))
	}
	return conn.LeftBehind(ctx, strings.Join(left, ", "))
}

// loopName is what errors call a loop.
func (d *driver) loopName(i int) string {
	return fmt.Sprintf("event loop %d of %d", i+1, len(d.all))
}
