package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"cellserver/internal/wire/peer"
)

// A Driver moves bytes between connections and their sessions.
type Driver interface {
	// Serve takes over an admitted connection and returns at once. It calls the host's Release when the
	// connection has ended.
	Serve(nc net.Conn, p peer.Peer)
	// LimitsChanged applies new timeouts to connections that wait for input.
	LimitsChanged()
	// Traffic returns the bytes of all connections, past and present.
	Traffic() Traffic
	// Shutdown executes what has been read, sends the replies and closes the connections. Once ctx is done it
	// closes the rest, and returns soon after, whether or not all have ended.
	Shutdown(ctx context.Context) error
	// Probe returns when every loop has come around once, or names one that has not.
	Probe(ctx context.Context) error
}

// MaxKeptReplies bounds the reply buffers that are kept for reuse.
const MaxKeptReplies = 256 << 10

// Traffic counts bytes on the wire, TLS records included.
type Traffic struct{ Received, Sent uint64 }

func (t *Traffic) Add(other Traffic) {
	t.Received += other.Received
	t.Sent += other.Sent
}

// ErrStuck is wrapped by Shutdown's error if something did not end in time.
var ErrStuck = errors.New("server: does not end")

// endTimeout bounds how long connections that were told to end at once may take.
const endTimeout = 250 * time.Millisecond

// Await waits until all of a driver has ended. When ctx is done first, it calls end, which ends the rest at
// once, and its error then wraps ctx's. If something hangs all the same, the error wraps ErrStuck and names
// what left lists.
func Await(ctx context.Context, wg *sync.WaitGroup, end func(), left func() string) error {
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
