package servers

import (
	"context"
	"sync"
	"time"
)

// lane bounds the connections to a server that are in use for one purpose, so that calls of many clients,
// or slow ones, leave some for other keys' pipelines.
type lane chan struct{}

// enter waits for a place for half of the time that ctx has left. A call that is sent with too little time
// left costs a connection, and the next call waits for a new one.
func (l lane) enter(ctx context.Context) bool {
	select {
	case l <- struct{}{}:
		return true
	default:
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	select {
	case l <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l lane) leave() { <-l }

// sendIn is send within a lane. A full lane says nothing about the server.
func (s *Server) sendIn(ctx context.Context, l lane, calls []*Call, wait int) {
	if !l.enter(ctx) {
		text := s.Addr + ": all connections for such calls are in use"
		s.fail(calls, &Failed{Reason: QueueFull, Text: text})
		return
	}
	defer l.leave()
	s.send(ctx, calls, wait)
}

// slowKeys are the keys of which single calls have timed out since the server last answered anything. A key
// may be slow by itself, because its value is large or many clients ask for it: that must not mark the
// server as away. If the server is away, calls about other keys, or about none, fail, too.
type slowKeys struct {
	mu   sync.Mutex
	keys map[string]struct{} // guarded by mu
}

// maxSlowKeys is more than the failures after which the circuit opens.
const maxSlowKeys = 2 * tripAfter

// known reports whether a time-out is of a key that has had one already, or of large values. It notes the
// key.
func (k *slowKeys) known(calls []*Call) bool {
	switch {
	case calls[0].Large:
		return true
	case len(calls) > 1 || len(calls[0].Keys) != 1:
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := calls[0].Keys[0]
	if _, is := k.keys[key]; is {
		return true
	}
	if k.keys == nil || len(k.keys) >= maxSlowKeys {
		k.keys = make(map[string]struct{}, 1)
	}
	k.keys[key] = struct{}{}
	return false
}

func (k *slowKeys) answered() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.keys)
}
