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

// A driver moves bytes between connections and their sessions.
type driver interface {
	// serve takes over an admitted connection and returns at once. When the connection has ended, it calls the
	// host's release.
	serve(nc net.Conn, p peer.Peer)
	// limitsChanged has the connections that wait for input follow new timeouts.
	limitsChanged()
	// traffic counts the bytes of all connections that there were.
	traffic() traffic
	// shutdown finishes what has been read from the connections, sends the replies and closes them. When ctx is
	// done first, it closes what is left. It returns when all have ended, or soon after ctx is done.
	shutdown(ctx context.Context) error
	// probe returns when all that serves has come around once, or names what has not.
	probe(ctx context.Context) error
}

// maxKeptReplies is how large a reply buffer may be that is kept.
const maxKeptReplies = 256 << 10

// traffic is bytes on the wire, those of TLS as they are there.
type traffic struct{ received, sent uint64 }

func (t *traffic) add(other traffic) {
	t.received += other.received
	t.sent += other.sent
}

// ErrStuck is in Shutdown's error if something did not end, though it was told to.
var ErrStuck = errors.New("server: does not end")

// leftBehind returns the error of a shutdown that had to leave something behind.
func leftBehind(ctx context.Context, what string) error {
	return fmt.Errorf("%w; %w: %s", ctx.Err(), ErrStuck, what)
}

// endTimeout is how long what was told to end at once may take for that.
const endTimeout = 250 * time.Millisecond

// waitAtLast waits until all of a driver has ended that was told to end at once, and is false if something of it hangs.
func waitAtLast(wg *sync.WaitGroup) bool {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	return waitOrDone(ctx, wg)
}

// waitOrDone waits until all of a driver has ended, and is false if ctx is done first.
func waitOrDone(ctx context.Context, wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
