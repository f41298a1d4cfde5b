package servers

import (
	"context"
	"sync"
	"time"
)

// lane is how many connections may be in use for one purpose, so that what many clients do at once, or what takes long, leaves some
// of a server's connections to the pipelines of other keys.
type lane chan struct{}

// enter waits for a place for half of the time that ctx has left: what is sent with too little of it costs a connection, and another
// has the next one wait for longer.
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

// sendIn is send within a lane. That there is no room in it says nothing about the server.
func (s *Server) sendIn(ctx context.Context, l lane, calls []*Call, wait int) {
	if !l.enter(ctx) {
		s.fail(calls, &Failed{Reason: QueueFull, Text: s.Addr + ": all connections for such calls are in use"})
		return
	}
	defer l.leave()
	s.send(ctx, calls, wait)
}

// slowKeys are those keys whose calls alone were not answered in time since the server has answered anything. One key may be slow by
// itself, as its value is large or many ask for it: it must not have the server taken for one that is away. If that is what it is,
// other keys' calls fail, too, or those about no key.
type slowKeys struct {
	mu   sync.Mutex
	keys map[string]struct{} // guarded by mu
}

// maxSlowKeys is more than the failures after which the circuit opens.
const maxSlowKeys = 2 * tripAfter

// known reports whether a time-out is one of a key that has had one already, or of values that take long, and notes the key.
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
