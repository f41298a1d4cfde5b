// Package health knows whether a remote store's servers answer: for readiness, metrics, the live page and INFO, and so that the log
// has a line when they cease to, and when they do again. A Watch is safe for concurrent use.
package health

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

const (
	interval = time.Second
	// lookTimeout is how long a server may take to answer: longer than a decision, so that a slow one counts as there.
	lookTimeout = time.Second
)

// Pool is what a Watch needs of a *servers.Pool.
type Pool interface {
	Masters(ctx context.Context) ([]*servers.Server, error)
	Send(ctx context.Context, s *servers.Server, calls []*servers.Call, wait int)
	Stats() []store.ServerStats
}

// Config is what a Watch needs.
type Config struct {
	Store  string // its URL, without a password
	Policy store.Fallback
	Pool   Pool
	Stats  func() store.RemoteStats
	// Size returns how many keys the servers have.
	Size func(context.Context) (int, error)
	Now  func() int64 // Unix nanoseconds
	Log  *slog.Logger
}

// Watch looks at a store once a second.
type Watch struct {
	config Config

	writing  *servers.Script // see run
	plain    *servers.Script
	faults   often.Counter
	failures map[store.Reason]*failures // of the goroutine that looks

	mu     sync.Mutex   // guards all below
	last   store.Health // without what the store and its pool tell themselves
	logged bool         // whether the log has that no server answers
}

// New returns a Watch that has not looked yet.
func New(c Config) *Watch {
	return &Watch{
		config: c, writing: servers.NewScript("#!lua\nreturn 1"), plain: servers.NewScript("return 1"),
		failures: map[store.Reason]*failures{}, last: store.Health{Store: c.Store, Policy: c.Policy},
	}
}

// Run looks until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *Watch) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	up, masters, err := w.ask(within)
	if ctx.Err() != nil { // what shuts down is not at fault
		return
	}
	w.note(up, masters, err)
	if keys, err := w.config.Size(within); err == nil {
		w.noteKeys(keys)
	}
	w.noteFailures(w.config.Stats().Failed)
}

// ask has all masters run a script, and returns how many there are, how many have, and why one has not.
func (w *Watch) ask(ctx context.Context) (up, masters int, err error) {
	all, err := w.config.Pool.Masters(ctx)
	if err != nil {
		return 0, 0, err
	}
	calls := make([]*servers.Call, len(all))
	var asked sync.WaitGroup
	for i, s := range all {
		calls[i] = &servers.Call{}
		asked.Go(func() { w.run(ctx, s, calls[i]) })
	}
	asked.Wait()
	for _, c := range calls {
		if c.Err != nil {
			err = c.Err
		} else {
			up++
		}
	}
	return up, len(all), err
}

// run has a server run a script that says that it may write, though it does not: so a replica refuses it, and a server that is
// full. Redis before 7 cannot read its first line, and runs one that does not say so.
func (w *Watch) run(ctx context.Context, s *servers.Server, c *servers.Call) {
	c.Script = w.writing
	w.config.Pool.Send(ctx, s, []*servers.Call{c}, 0)
	if f, ok := errors.AsType[*servers.Failed](c.Err); ok && f.Reason == servers.NoScripting && strings.Contains(f.Text, "compiling") {
		c.Script = w.plain
		w.config.Pool.Send(ctx, s, []*servers.Call{c}, 0)
	}
}

// note notes how a look went.
func (w *Watch) note(up, masters int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	nowNs, st := w.config.Now(), &w.last
	if !st.Asked || (up == 0) != (st.Up == 0) {
		w.changeLocked(up > 0, nowNs)
	}
	st.Asked, st.Up, st.Masters, st.Fault = true, up, masters, err
	if up == 0 && !w.logged && w.faults.Due(nowNs) > 0 {
		w.logged = true
		w.config.Log.Error("the store does not answer", "error", err, "store", st.Store, "on-store-error", st.Policy.String(),
			"hint", "until it does, calls are answered as --on-store-error says; no restart is required")
	}
}

// changeLocked is about the first look, and those that differ from the one before.
func (w *Watch) changeLocked(up bool, nowNs int64) {
	switch st := &w.last; {
	case up && !st.Asked:
		w.config.Log.Info("the store answers", "store", st.Store)
	case up && w.logged:
		w.config.Log.Info("the store answers again", "store", st.Store, "after", time.Duration(nowNs-st.SinceNs).Round(time.Millisecond).String())
	}
	w.last.SinceNs, w.logged = nowNs, false
}

func (w *Watch) noteKeys(keys int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last.Keys = keys
}

// Keys returns how many keys the servers had when they were last asked.
func (w *Watch) Keys() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.Keys
}

// Health returns how the store is.
func (w *Watch) Health() store.Health {
	stats, all := w.config.Stats(), w.config.Pool.Stats()
	for i := range stats.Servers {
		addConnections(&stats.Servers[i], all)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.last
	h.Stats = stats
	return h
}

// addConnections adds what has come of the connections to a server. Of one that was forgotten meanwhile
// nothing is known.
func addConnections(s *store.ServerStats, all []store.ServerStats) {
	known := store.ServerStats{Circuit: "closed"}
	if i := slices.IndexFunc(all, func(other store.ServerStats) bool { return other.Addr == s.Addr }); i >= 0 {
		known = all[i]
	}
	known.Addr, known.Queued, known.InFlight, known.RoundTripNs = s.Addr, s.Queued, s.InFlight, s.RoundTripNs
	*s = known
}
