package servers

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/store"
	"cellserver/internal/test/processtest"
)

// pool is servers of which some answer.
type pool struct {
	mu    sync.Mutex // guards all below
	all   []*Server
	away  map[*Server]bool
	err   error // of Masters
	hangs bool
}

func (p *pool) Masters(context.Context) ([]*Server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, p.err
}

func (p *pool) Stats() []store.ServerStats { return nil }

func (p *pool) Send(ctx context.Context, s *Server, calls []*Call, _ int) {
	p.mu.Lock()
	away, hangs := p.away[s], p.hangs
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	for _, c := range calls {
		if away || hangs {
			c.Err = &Failed{Reason: Network, Text: s.Addr + ": connection refused"}
		}
	}
}

func (p *pool) size(context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return 7, p.err
}

// become changes the
func (p *pool) become(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// watched returns a Checker of three servers with its log.
func watched() (*Checker, *pool, *store.RemoteStats, *processtest.Log) {
	p := &pool{away: map[*Server]bool{}}
	for _, addr := range []string{"a:1", "b:1", "c:1"} {
		p.all = append(p.all, &Server{Addr: addr})
	}
	stats, log := &store.RemoteStats{}, &processtest.Log{}
	return NewChecker(CheckerConfig{
		Store: "redis-cluster://a:1", Policy: store.FallbackDeny, Pool: p, Stats: func() store.RemoteStats { return *stats },
		Size: p.size, Now: func() int64 { return time.Now().UnixNano() },
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}), p, stats, log
}

// TestWatch: a store is up while one of its servers answers, and each change is logged.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, _, log := watched()
		if st := w.Health(); st.Asked || st.Away() {
			t.Errorf("before it has looked: %+v", st)
		}
		ctx, stop := context.WithCancel(t.Context())
		go w.Run(ctx)
		step := func(want store.Health, lines ...string) {
			t.Helper()
			time.Sleep(checkEvery)
			synctest.Wait()
			st := w.Health()
			if !st.Asked || st.Up != want.Up || st.Masters != want.Masters || (st.Fault == nil) != (want.Fault == nil) || st.Away() != (want.Up == 0) {
				t.Errorf("got %+v, want %+v", st, want)
			}
			for _, line := range lines {
				if strings.Count(log.String(), line) != 1 {
					t.Errorf("%q is not once in\n%s", line, log.String())
				}
			}
		}
		step(store.Health{Up: 3, Masters: 3}, `msg="the store answers" store=redis-cluster://a:1`)
		if w.Keys() != 7 {
			t.Errorf("%d keys", w.Keys())
		}
		fault := errors.New("one")
		p.become(func() { p.away[p.all[1]] = true })
		step(store.Health{Up: 2, Masters: 3, Fault: fault})
		since := w.Health().SinceNs
		p.become(func() { p.away[p.all[0]], p.away[p.all[2]] = true, true })
		step(store.Health{Masters: 3, Fault: fault}, `msg="the store does not answer"`, "on-store-error=deny")
		step(store.Health{Masters: 3, Fault: fault}, `msg="the store does not answer"`)
		if w.Health().SinceNs <= since {
			t.Error("it is not away since then")
		}
		p.become(func() { clear(p.away) })
		step(store.Health{Up: 3, Masters: 3}, `msg="the store answers again" store=redis-cluster://a:1 after=2s`)
		p.become(func() { p.all, p.err = nil, fault })
		step(store.Health{Fault: fault})
		p.become(func() { p.all, p.err, p.hangs = []*Server{{Addr: "a:1"}}, nil, true })
		time.Sleep(lookTimeout)
		step(store.Health{Masters: 1, Fault: fault})
		stop()
		synctest.Wait()
	})
}

// TestHintOnPassword: a store that wants a password is no network's fault, and the log says where to give it.
func TestHintOnPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _, log := watched()
		w.note(0, 1, &Failed{Reason: Auth, Text: "a:1: NOAUTH Authentication required."})
		if got := log.String(); !strings.Contains(got, "--store-password-file") || strings.Contains(got, "no restart") {
			t.Errorf("got %s", got)
		}
	})
}

// TestFlapping logs at most a line a minute.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _, log := watched()
		for range 60 {
			w.note(0, 3, errors.New("away"))
			time.Sleep(time.Second)
			w.note(3, 3, nil)
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "\n"); n > 6 {
			t.Errorf("%d lines in two minutes:\n%s", n, log.String())
		}
	})
}

// TestFailures logs each reason once a minute, with the number of calls.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, stats, log := watched()
		for i := range uint64(90) {
			stats.Failed = map[store.Reason]uint64{OutOfMemory: 10 * (i + 1), WrongType: i, Auth: 0}
			w.noteFailures(stats.Failed)
			time.Sleep(time.Second)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || strings.Count(text, "reason=oom") != 2 || !strings.Contains(text, "calls=10 ") || !strings.Contains(text, "calls=600 ") {
			t.Errorf("the log is\n%s", text)
		}
	})
	for _, reason := range Reasons() {
		if hintOn(reason) == "" {
			t.Errorf("no hint on %s", reason)
		}
	}
}
