package load

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func repeated(n int, call Call) []Call { return slices.Repeat([]Call{call}, n) }

// TestLibrary: each connection has a caller for each request at once, and is hung up.
func TestLibrary(t *testing.T) {
	var dialled, callers, calls, open atomic.Int64
	command := LibraryCommand(func(netip.AddrPort, time.Duration) (func() Call, func(), error) {
		dialled.Add(1)
		open.Add(1)
		return func() Call {
			callers.Add(1)
			return func(context.Context, uint64) (bool, error) { return calls.Add(1)%4 == 0, nil }
		}, func() { open.Add(-1) }, nil
	}, "a call")
	for _, rate := range []float64{0, 1e6} {
		dialled.Store(0)
		callers.Store(0)
		calls.Store(0)
		g, err := Open(Config{Command: command, Conns: 3, Pipeline: 5, Keys: Keys{Dist: Uniform, Count: 10}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.Run(t.Context(), Plan{Requests: 100, Rate: rate})
		if err != nil || r.Requests != 105 || r.Limited != 26 || calls.Load() != 105 {
			t.Errorf("%d calls: %+v, %v", calls.Load(), r, err)
		}
		if dialled.Load() != 3 || callers.Load() != 15 || open.Load() != 3 {
			t.Errorf("%d connections, %d callers, %d open", dialled.Load(), callers.Load(), open.Load())
		}
		if g.Close(); open.Load() != 0 {
			t.Errorf("%d still open", open.Load())
		}
	}
}

// TestNoLibraryServer: the connections before the one that fails are hung up.
func TestNoLibraryServer(t *testing.T) {
	open, refused := 0, errors.New("refused")
	_, err := Open(Config{Conns: 3, Pipeline: 1, Keys: Keys{Dist: Hot, Count: 1}, Command: LibraryCommand(func(netip.AddrPort, time.Duration) (func() Call, func(), error) {
		if open == 2 {
			return nil, nil, refused
		}
		open++
		return func() Call { return nil }, func() { open-- }, nil
	}, "a call")})
	if !errors.Is(err, refused) || open != 0 {
		t.Errorf("%v: %d open", err, open)
	}
}

func TestCallersAreCounted(t *testing.T) {
	keys := Keys{Dist: Uniform, Count: 10}
	for _, rate := range []float64{0, 1000} {
		var calls atomic.Int64
		r, err := RunCallers(t.Context(), repeated(20, func(_ context.Context, key uint64) (bool, error) {
			if key >= 10 {
				t.Errorf("key %d", key)
			}
			time.Sleep(time.Millisecond)
			return calls.Add(1)%2 == 0, nil
		}), keys, Plan{Duration: 100 * time.Millisecond, Rate: rate})
		if err != nil || int64(r.Requests) != calls.Load() || r.Limited != r.Requests/2 || r.Latency.TotalCount() != calls.Load() || r.Requests == 0 {
			t.Errorf("%d calls: %+v, %v", calls.Load(), r, err)
		}
		if rate > 0 && r.Requests > 100 { // fewer where the machine is busy
			t.Errorf("%d calls in 100 ms at 1,000 a second", r.Requests)
		}
	}
}

func TestCallersEndWithAnError(t *testing.T) {
	failure := errors.New("no")
	call := func(context.Context, uint64) (bool, error) { return false, failure }
	_, err := RunCallers(t.Context(), repeated(3, call), Keys{Dist: Hot, Count: 1}, Plan{Duration: time.Hour})
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunCallers(ctx, repeated(3, call), Keys{Dist: Hot, Count: 1}, Plan{Duration: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
