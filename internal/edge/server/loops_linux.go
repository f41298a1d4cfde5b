package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"cellserver/internal/wire/peer"
)

// loops is the driver that serves connections from a few event loops over epoll. It passes those without a
// descriptor to fallback. It is safe for concurrent use.
type loops struct {
	server   *Server
	all      []*loop
	fallback driver
	wg       sync.WaitGroup
}

// newLoops returns a driver of n loops, or fallback if they cannot be started.
func newLoops(s *Server, n int, fallback driver) driver {
	d := &loops{server: s, fallback: fallback}
	for range n {
		l, err := newLoop(s)
		if err != nil {
			s.config.Log.Error("cannot start the event loops; each client gets a goroutine instead", "error", err,
				"hint", "for \"too many open files\", raise the limit (ulimit -n)")
			for _, l := range d.all {
				l.poll.close()
			}
			return fallback
		}
		d.all = append(d.all, l)
	}
	for _, l := range d.all {
		d.wg.Go(l.run)
	}
	return d
}

func (d *loops) serve(nc net.Conn, p peer.Peer) {
	fd, err := takeDescriptor(nc)
	if err != nil {
		d.fallback.serve(nc, p)
		return
	}
	_ = nc.Close() // the duplicate stays open
	d.add(fd, p, nil, d.server.config.Now())
}

func (d *loops) serveGuest(nc net.Conn, g *Guest, by *GuestServer) bool {
	fd, err := takeDescriptor(nc)
	if err != nil {
		return false
	}
	_ = nc.Close()
	d.add(fd, g.Peer, by, g.openedNs)
	return true
}

func (d *loops) add(fd int, p peer.Peer, by *GuestServer, openedNs int64) {
	l := slices.MinFunc(d.all, func(a, b *loop) int { return cmp.Compare(a.load.Load(), b.load.Load()) })
	l.load.Add(1)
	c := &loopConn{loop: l, fd: int32(fd), peer: p, door: by, life: life{openedNs: openedNs}}
	if !l.inbox.add(c) {
		c.refuse()
	}
}

// takeDescriptor duplicates nc's descriptor, so that Go's runtime does not poll it as well.
func takeDescriptor(nc net.Conn) (fd int, err error) {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return -1, errors.ErrUnsupported // TLS has more state than its socket
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

func (d *loops) limitsChanged() {
	d.post(func(m *mail) { m.limited = true })
	d.fallback.limitsChanged()
}

func (d *loops) traffic() traffic {
	sum := d.fallback.traffic()
	for _, l := range d.all {
		sum.add(traffic{received: l.received.Load(), sent: l.sent.Load()})
	}
	return sum
}

func (d *loops) shutdown(ctx context.Context) error {
	d.raise(stageDraining)
	err := d.fallback.shutdown(ctx)
	own := await(ctx, &d.wg, func() { d.raise(stageEnding) }, d.hanging)
	if errors.Is(err, ErrStuck) && errors.Is(own, ErrStuck) {
		return fmt.Errorf("%w, %s", err, d.hanging())
	}
	if errors.Is(own, ErrStuck) {
		return own
	}
	return cmp.Or(err, own)
}

func (d *loops) raise(to stage) { d.post(func(m *mail) { m.stage = max(m.stage, to) }) }

// post changes the mail of all loops.
func (d *loops) post(change func(m *mail)) {
	for _, l := range d.all {
		l.inbox.post(change)
	}
}

// hanging lists the loops that have not ended.
func (d *loops) hanging() string {
	var names []string
	for i, l := range d.all {
		if !l.inbox.isClosed() {
			names = append(names, d.loopName(i))
		}
	}
	return strings.Join(names, ", ")
}

func (d *loops) probe(ctx context.Context) error {
	answers := make([]chan struct{}, len(d.all))
	for i, l := range d.all { // ask all before waiting for the first
		answers[i] = make(chan struct{})
		l.inbox.post(func(m *mail) { m.probes = append(m.probes, answers[i]) })
	}
	for i, answer := range answers {
		select {
		case <-answer:
		case <-ctx.Done():
			return fmt.Errorf("server: %s does not respond: %w", d.loopName(i), ctx.Err())
		}
	}
	return d.fallback.probe(ctx)
}

func (d *loops) loopName(i int) string { return fmt.Sprintf("event loop %d of %d", i+1, len(d.all)) }
