package remote

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// TestJoined: requests that arrive during a key's script share the next one, in order.
func TestJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		var args [][]any
		f := &fake{}
		f.send = func(_ ctxType, _ *servers.Server, calls []*servers.Call) {
			for _, c := range calls {
				args = append(args, slices.Clone(c.Args))
			}
			<-goOn
		}
		s := opened(t, Config{Pool: f})
		l := mustLimit(t, 9, 1, 60)
		all := []store.Pending{s.Throttle(t0, []store.Request{ask("k", l, 1)})}
		synctest.Wait()
		for range 3 {
			all = append(all, s.Throttle(t0, []store.Request{ask("k", l, 2), ask("k", l, 2), ask("k", l, 0), ask("k", l, -1), ask("k", l, 11)}))
		}
		synctest.Wait()
		close(goOn)
		// the second script begins with an empty funnel
		left := []int64{9, 8, 6, 6, 7, 7, 5, 3, 3, 4, 4, 2, 0, 0, 1, 1}
		var got []int64
		for _, p := range all {
			for _, q := range answersOf(p) {
				got = append(got, q.Result.Remaining)
			}
		}
		if !slices.Equal(got, left) {
			t.Errorf("%v remain, want %v", got, left)
		}
		want := "[[60 0 600 0] [2 120 0 600 0 -1 60 0 0 0 2 120 0 600 0 -1 60 0 0 0 2 120 0 600 0 -1 60 0 0 0]]"
		if fmt.Sprint(args) != want {
			t.Errorf("sent %v, want %s", args, want)
		}
		if st := s.Stats(); st.Asked != 16 || st.Joined != 14 || st.Scripts != 2 || st.Pipelines != 2 {
			t.Errorf("got %+v", st)
		}
	})
}

// TestRunsAreBounded: requests above a script's bound follow in the next.
func TestRunsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		s := opened(t, Config{Pool: f})
		batch := make([]store.Request, 5*script.MaxRuns+1)
		for i := range batch {
			batch[i] = ask("k", mustLimit(t, 999, 1, 60), 1+int64(i%2))
		}
		decide(s, t0, batch...)
		synctest.Wait()
		if n := len(f.pipelines()); n != 6 {
			t.Errorf("%d pipelines", n)
		}
	})
}

// TestPipelines: more are sent if many requests wait, up to a few.
func TestPipelines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		f := &fake{}
		f.send = func(_ ctxType, _ *servers.Server, _ []*servers.Call) { <-goOn }
		s := opened(t, Config{Pool: f})
		var all []store.Pending
		for i := range 8 * engine.MaxPipelines * engine.MorePipelines {
			all = append(all, s.Throttle(t0, []store.Request{ask(fmt.Sprint("k", i), mustLimit(t, 9, 1, 60), 1)}))
			if i == 0 || i == engine.MorePipelines {
				synctest.Wait() // until one or two are sent
			}
			if i == engine.MorePipelines-1 {
				if st := s.Stats().Servers[0]; st.InFlight != 1 || st.Queued != engine.MorePipelines-1 {
					t.Errorf("got %+v", st)
				}
			}
		}
		synctest.Wait()
		if st := s.Stats().Servers[0]; st.InFlight != engine.MaxPipelines {
			t.Errorf("got %+v", st)
		}
		close(goOn)
		for _, p := range all {
			answersOf(p)
		}
		synctest.Wait()
		if st := s.Stats().Servers[0]; st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("got %+v", st)
		}
		if n := s.engine.Keys(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// TestAllocations: a batch takes a few a request.
func TestAllocations(t *testing.T) {
	s := opened(t, Config{Pool: &fake{}})
	l := mustLimit(t, 9, 1, 60)
	var batch [64]store.Request
	var names [len(batch)][]byte
	for i := range names {
		names[i] = fmt.Append(nil, "key:", i)
	}
	n := testing.AllocsPerRun(500, func() {
		for i := range batch {
			batch[i] = ask("", l, 1)
			batch[i].Key.Name = names[i]
		}
		answersOf(s.Throttle(t0, batch[:]))
	})
	if n > 4*float64(len(batch)) {
		t.Errorf("%v allocations for %d requests", n, len(batch))
	}
}
