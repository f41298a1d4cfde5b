package remote

import (
	"context"
	"slices"
	"sync"
	"time"

	"cellserver/internal/keep/remote/servers"
)

// fake is a Pool of servers that do what a test says. Its zero value answers everything as an absent key's
// script at t0.
type ctxType = context.Context

type fake struct {
	of   func(key string) (*servers.Server, error)
	send func(ctx context.Context, s *servers.Server, calls []*servers.Call)

	clustered bool

	mu    sync.Mutex // guards all below
	sent  [][]string // the keys of each pipeline
	waits []int      // replicas each waits for
	known map[string]*servers.Server
}

const answerAtT0 = " 1700000000 0"

func (f *fake) Clustered() bool { return f.clustered }

func (f *fake) OneStep([]string) bool { return true }

func (f *fake) Slot(string) uint16 { return 0 }

func (f *fake) Of(_ context.Context, key string) (*servers.Server, error) {
	if f.of != nil {
		return f.of(key)
	}
	return f.At("a:1"), nil
}

func (f *fake) At(addr string) *servers.Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[string]*servers.Server{}
	}
	if f.known[addr] == nil {
		f.known[addr] = &servers.Server{Addr: addr}
	}
	return f.known[addr]
}

func (f *fake) Forgotten(s *servers.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[s.Addr] != s
}

func (f *fake) Send(ctx context.Context, s *servers.Server, calls []*servers.Call, wait int) {
	var keys []string
	for _, c := range calls {
		keys = append(keys, c.Keys[0])
		c.Reply, c.Err = answerAtT0, nil
	}
	f.mu.Lock()
	f.sent, f.waits = append(f.sent, keys), append(f.waits, wait)
	f.mu.Unlock()
	if f.send != nil {
		f.send(ctx, s, calls)
	}
}

func (f *fake) Do(ctx context.Context, key string, c *servers.Call, wait int) error {
	s, err := f.Of(ctx, key)
	if err == nil {
		f.Send(ctx, s, []*servers.Call{c}, wait)
		err = c.Err
	}
	return err
}

func (f *fake) Masters(context.Context) ([]*servers.Server, error) {
	return []*servers.Server{f.At("a:1")}, nil
}

// pipelines returns the keys of all pipelines sent.
func (f *fake) pipelines() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// fails has all calls fail.
func fails(failed servers.Failed) func(context.Context, *servers.Server, []*servers.Call) {
	return func(_ context.Context, _ *servers.Server, calls []*servers.Call) {
		for _, c := range calls {
			c.Err = &failed
		}
	}
}

// hangs answers nothing until ctx ends, as a stopped server.
func hangs(ctx context.Context, s *servers.Server, calls []*servers.Call) {
	<-ctx.Done()
	time.Sleep(time.Millisecond) // else the policy and this would race
	fails(servers.Failed{Reason: servers.Timeout, Executed: servers.Maybe, Text: "no answer from " + s.Addr})(ctx, s, calls)
}

// notes is a Pool that notes answered calls.
type notes struct {
	Pool
	note func(calls []*servers.Call)
}

func (s *Store) noteTo(note func(calls []*servers.Call)) {
	p := notes{s.Pool, note}
	s.Pool, s.engine.Pool = p, p
}

func (p notes) Send(ctx context.Context, s *servers.Server, calls []*servers.Call, wait int) {
	p.Pool.Send(ctx, s, calls, wait)
	p.note(calls)
}

func (p notes) Do(ctx context.Context, key string, c *servers.Call, wait int) error {
	err := p.Pool.Do(ctx, key, c, wait)
	p.note([]*servers.Call{c})
	return err
}
