package cellserver_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	cellserver "cellserver/adapters/go"
)

var errUpstream = errors.New("the model failed")

// tokens yields n chunks, and then perhaps an error.
func tokens(n int, err error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for range n {
			if !yield("token", nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func TestStream(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	one := func(string) []int64 { return []int64{1, 2} }
	none := func(string) []int64 { return nil }
	const breaks, ends, settles = 1, 2, 3
	for i, tt := range []struct {
		chunks    int
		err       error
		count     func(string) []int64
		at        int // the chunk at which the client does
		client    int
		org, user int64 // used
	}{
		{3, nil, one, 0, 0, 3, 6},
		{3, nil, none, 0, 0, 0, 0},
		{3, nil, nil, 0, 0, 40, 20}, // open: nobody has settled it
		{3, nil, one, 2, breaks, 2, 4},
		{3, nil, nil, 2, breaks, 40, 20},
		{3, nil, one, 2, ends, 2, 4},
		{3, nil, nil, 2, ends, 40, 20},
		{0, errUpstream, one, 0, 0, 0, 0},
		{2, errUpstream, one, 0, 0, 2, 4},
		{2, errUpstream, nil, 0, 0, 0, 0},
		{2, context.Canceled, nil, 3, ends, 40, 20},
		{3, nil, one, 3, settles, 7, 7},
		{2, errUpstream, one, 3, settles, 7, 7},
	} {
		s.Do(t, "del org:acme user:ann")
		ctx, cancel := context.WithCancel(t.Context())
		h := holdFor(t, l, long/2, use("org", "acme", 40), use("user", "ann", 20))
		at := 0
		for _, err := range cellserver.Stream(ctx, h, tokens(tt.chunks, tt.err), tt.count) {
			if err != nil && !errors.Is(err, tt.err) {
				t.Error(err)
			}
			if at++; at != tt.at {
				continue
			}
			if tt.client == breaks {
				break
			} else if tt.client == ends {
				cancel()
			} else {
				check(t, h.Settle(ctx, 7))
			}
		}
		cancel()
		if org, user := 1000-left(t, s, "org", "acme"), 100-left(t, s, "user", "ann"); org != tt.org || user != tt.user {
			t.Errorf("%d: %d and %d are used, want %d and %d", i, org, user, tt.org, tt.user)
		}
	}
}

// TestStreamExtends has a stream that is longer than its hold.
func TestStreamExtends(t *testing.T) {
	s := budgets(t)
	l := patient(t, s.Addr, cellserver.Closed)
	client := &losing{Client: l.Client, off: true}
	l.Client = client
	h := holdFor(t, l, 300*time.Millisecond, use("user", "ann", 40))
	extended := func() (n int) {
		client.mu.Lock()
		defer client.mu.Unlock()
		for _, command := range client.log {
			if command == "CL.MEXTEND" {
				n++
			}
		}
		return n
	}
	for _, err := range cellserver.Stream(t.Context(), h, tokens(1, nil), nil) {
		check(t, err)
		for extended() < 3 {
			time.Sleep(time.Millisecond)
		}
	}
	check(t, h.Settle(t.Context(), 10))
	if got := left(t, s, "user", "ann"); got != 90 {
		t.Errorf("%d are left", got)
	}
}
