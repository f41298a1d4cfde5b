package load

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestCallersAreCounted(t *testing.T) {
	keys := Keys{Dist: Uniform, Count: 10}
	for _, rate := range []float64{0, 1000} {
		var calls atomic.Int64
		r, err := RunCallers(t.Context(), 20, keys, Plan{Duration: 100 * time.Millisecond, Rate: rate}, func(_ context.Context, key uint64) (bool, error) {
			if key >= 10 {
				t.Errorf("key %d", key)
			}
			time.Sleep(time.Millisecond)
			return calls.Add(1)%2 == 0, nil
		})
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
	_, err := RunCallers(t.Context(), 3, Keys{Dist: Hot, Count: 1}, Plan{Duration: time.Hour}, call)
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunCallers(ctx, 3, Keys{Dist: Hot, Count: 1}, Plan{Duration: time.Hour}, call); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
