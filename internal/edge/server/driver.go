package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"cellserver/internal/wire/peer"
)

// driver moves bytes between connections and their sessions.
type driver interface {
	// serve takes over an admitted connection and returns at once. It calls the server's release when the
	// connection has ended.
	serve(nc net.Conn, p peer.Peer)
	// serveGuest is serve for a door's connection, if the driver can.
	serveGuest(nc net.Conn, g *Guest, by *GuestServer) bool
	// limitsChanged applies new timeouts to connections that wait for input.
	limitsChanged()
	// traffic returns the bytes of all connections, past and present.
	traffic() traffic
	// shutdown executes what has been read, sends the replies and closes the connections. Once ctx is done it
	// closes the rest, and returns soon after, whether or not all have ended.
	shutdown(ctx context.Context) error
	// probe returns when every loop has come around once, or names one that has not.
	probe(ctx context.Context) error
}

// maxKeptReplies bounds the reply buffers that are kept for reuse.
const maxKeptReplies = 256 << 10

// traffic counts bytes on the wire, TLS records included.
type traffic struct{ received, sent uint64 }

func (t *traffic) add(other traffic) {
	t.received += other.received
	t.sent += other.sent
}

// ErrStuck is wrapped by Shutdown's error if something did not end in time.
var ErrStuck = errors.New("server: does not end")

// endTimeout bounds how long connections that were told to end at once may take.
const endTimeout = 250 * time.Millisecond

// await waits until all of a driver has ended. When ctx is done first, it calls end, which ends the rest at
// once, and its error then wraps ctx's. If something hangs all the same, the error wraps ErrStuck and names
// what left lists.
func await(ctx context.Context, wg *sync.WaitGroup, end func(), left func() string) error {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	end()
	select {
	case <-done:
		return ctx.Err()
	case <-time.After(endTimeout):
		return fmt.Errorf("%w; %w: %s", ctx.Err(), ErrStuck, left())
	}
}
