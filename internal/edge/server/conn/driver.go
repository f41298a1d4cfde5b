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
	// Serve takes over an admitted connection and returns at once. When the connection has ended, it calls the
	// host's Release.
	Serve(nc net.Conn, p peer.Peer)
	// LimitsChanged has the connections that wait for input follow new timeouts.
	LimitsChanged()
	// Traffic counts the bytes of all connections that there were.
	Traffic() Traffic
	// Shutdown finishes what has been read from the connections, sends the replies and closes them. When ctx is
	// done first, it closes what is left. It returns when all have ended, or soon after ctx is done.
	Shutdown(ctx context.Context) error
	// Probe returns when all that serves has come around once, or names what has not.
	Probe(ctx context.Context) error
}

// MaxKeptReplies is how large a reply buffer may be that is kept.
const MaxKeptReplies = 256 << 10

// Traffic is bytes on the wire, those of TLS as they are there.
type Traffic struct{ Received, Sent uint64 }

// Add adds other traffic.
func (t *Traffic) Add(other Traffic) {
	t.Received += other.Received
	t.Sent += other.Sent
}

// ErrStuck is in Shutdown's error if something did not end, though it was told to.
var ErrStuck = errors.New("server: does not end")

// LeftBehind returns the error of a shutdown that had to leave something behind.
func LeftBehind(ctx context.Context, what string) error {
	return fmt.Errorf("%w; %w: %s", ctx.Err(), ErrStuck, what)
}

// endTimeout is how long what was told to end at once may take for that.
const endTimeout = 250 * time.Millisecond

// WaitAtLast waits until all of a driver has ended that was told to end at once, and is false if something of it hangs.
func WaitAtLast(wg *sync.WaitGroup) bool {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	return WaitOrDone(ctx, wg)
}

// WaitOrDone waits until all of a driver has ended, and is false if ctx is done first.
func WaitOrDone(ctx context.Context, wg *sync.WaitGroup) bool {
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
