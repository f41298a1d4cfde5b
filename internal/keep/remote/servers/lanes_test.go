package servers

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// withoutAnswers is a server that leaves calls on keys with a prefix unanswered until the test ends.
func withoutAnswers(t *testing.T, begin string) *fake {
	t.Helper()
	return startFake(t, &fake{readMax: -1, writeMax: -1, answer: func(words []string) string {
		if slices.ContainsFunc(words, func(w string) bool { return len(w) > len(begin) && w[:len(begin)] == begin }) {
			<-t.Context().Done()
		}
		return ":1\r\n"
	}})
}

// TestOneSlowKey: one key's timeouts do not stop other keys' calls; several keys' open the circuit.
func TestOneSlowKey(t *testing.T) {
	t.Parallel()
	p := open(t, Config{URL: "redis://" + withoutAnswers(t, "slow").addr, Timeout: 20 * time.Millisecond})
	for range 4 * tripAfter {
		if failed := failsIn(t, p, "slow-1", 20*time.Millisecond); failed.Reason == CircuitOpen {
			t.Fatal("one key has the server left alone")
		}
	}
	call := &Call{Script: nothing, Keys: []string{"other"}}
	if err := p.Do(deadline(t, time.Minute), "other", call, 0); err != nil {
		t.Errorf("another key's call: %v", err)
	}
	for i := 0; ; i++ {
		if failed := failsIn(t, p, "slow-"+strconv.Itoa(i), 20*time.Millisecond); failed.Reason == CircuitOpen {
			break
		}
		if i > 1000 {
			t.Fatal("a server that answers nothing is not left alone")
		}
	}
}

// TestLanesLeaveConnections: neither calls on large values nor many callers at once use up the connections.
func TestLanesLeaveConnections(t *testing.T) {
	t.Parallel()
	p := open(t, Config{URL: "redis://" + withoutAnswers(t, "slow").addr, Timeout: 2 * time.Minute})
	ctx := deadline(t, time.Minute)
	var callers sync.WaitGroup
	t.Cleanup(callers.Wait) // with the test the server closes their connections
	for i := range 80 {
		callers.Go(func() {
			key := "slow" + strconv.Itoa(i)
			_ = p.Do(ctx, key, &Call{Script: nothing, Keys: []string{key}, Large: i%2 == 0}, 0)
		})
	}
	s, err := p.Of(ctx, "other")
	if err != nil {
		t.Fatal(err)
	}
	const lanes = defaultPoolSize/2 + defaultPoolSize/8
	for p.Stats()[0].Conns < lanes {
		if !sleep(ctx, time.Millisecond) {
			t.Fatalf("%d connections are in use", p.Stats()[0].Conns)
		}
	}
	c := &Call{Script: nothing, Keys: []string{"other"}}
	if p.Send(ctx, s, []*Call{c}, 0); c.Err != nil {
		t.Errorf("a pipeline beside them: %v", c.Err)
	}
	if n := p.Stats()[0].Conns; n > lanes+1 {
		t.Errorf("%d connections are open", n)
	}
}
