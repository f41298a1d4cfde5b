package servers

import (
	"context"
	"sync"
	"time"
)

// lane bounds the connections used for one purpose, so that many or slow calls leave some for other keys'
// pipelines.
type lane chan struct{}

// enter waits for half of the time left in ctx. A call sent too late would cost its connection.
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

func (s *Server) sendIn(ctx context.Context, l lane, calls []*Call, wait int) {
	if !l.enter(ctx) {
		text := s.Addr + ": all connections for such calls are in use"
		s.fail(calls, &Failed{Reason: QueueFull, Text: text})
		return
	}
	defer l.leave()
	s.send(ctx, calls, wait)
}

// slowKeys are the keys of single calls that have timed out since the server's last answer. A key may be slow
// because its value is large or many clients use it: that must not open the circuit. If the server is down,
// calls on other keys fail, too.
type slowKeys struct {
	mu   sync.Mutex          // rank 90: guards all below
	keys map[string]struct{} // guarded by mu
}

// maxSlowKeys is more than the failures after which the circuit opens.
const maxSlowKeys = 2 * tripAfter

// known notes the key of a timeout, and reports whether it had one before, or has large values.
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
