package servers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"cellserver/internal/base/often"
	"cellserver/internal/store"
)

const (
	checkEvery = time.Second
	// lookTimeout is longer than a decision may take, so that a slow server counts as up.
	lookTimeout = time.Second
)

// Checked is the part of a *Pool that a Checker uses.
type Checked interface {
	Masters(ctx context.Context) ([]*Server, error)
	Send(ctx context.Context, s *Server, calls []*Call, wait int)
	Stats() []store.ServerStats
}

type CheckerConfig struct {
	Store  string // its URL, without a password
	Policy store.Fallback
	Pool   Checked
	Stats  func() store.RemoteStats
	Size   func(context.Context) (int, error) // number of keys on the servers
	Now    func() int64                       // Unix nanoseconds
	Log    *slog.Logger
}

// Checker checks once a second whether a remote store's servers answer, for readiness, metrics, the live
// page, INFO and the log. It is safe for concurrent use.
type Checker struct {
	config CheckerConfig

	writing  *Script // see run
	plain    *Script
	faults   often.Counter
	failures map[store.Reason]*failures // used by Run only

	mu     sync.Mutex   // rank 40: guards all below
	last   store.Health // without Stats
	logged bool         // the log has that no server answers
}

func NewChecker(c CheckerConfig) *Checker {
	return &Checker{
		config: c, writing: NewScript("#!lua\nreturn 1"), plain: NewScript("return 1"),
		failures: map[store.Reason]*failures{}, last: store.Health{Store: c.Store, Policy: c.Policy},
	}
}

func (w *Checker) Run(ctx context.Context) {
	ticker := time.NewTicker(checkEvery)
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

func (w *Checker) look(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	up, masters, err := w.ask(within)
	if ctx.Err() != nil { // shutdown
		return
	}
	w.note(up, masters, err)
	if keys, err := w.config.Size(within); err == nil {
		w.mu.Lock()
		w.last.Keys = keys
		w.mu.Unlock()
	}
	w.noteFailures(w.config.Stats().Failed)
}

// ask has all masters run a script. It returns how many did, how many there are, and an error of one that did
// not.
func (w *Checker) ask(ctx context.Context) (up, masters int, err error) {
	all, err := w.config.Pool.Masters(ctx)
	if err != nil {
		return 0, 0, err
	}
	calls := make([]*Call, len(all))
	var asked sync.WaitGroup
	for i, s := range all {
		calls[i] = &Call{}
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

// run runs a script that is declared as writing, so that replicas and full servers refuse it. Redis before 7
// cannot parse that declaration and gets a script without it.
func (w *Checker) run(ctx context.Context, s *Server, c *Call) {
	c.Script = w.writing
	w.config.Pool.Send(ctx, s, []*Call{c}, 0)
	if f, ok := errors.AsType[*Failed](c.Err); ok && f.Reason == NoScripting && strings.Contains(f.Text, "compiling") {
		c.Script = w.plain
		w.config.Pool.Send(ctx, s, []*Call{c}, 0)
	}
}

func (w *Checker) note(up, masters int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	nowNs, st := w.config.Now(), &w.last
	if !st.Asked || (up == 0) != (st.Up == 0) {
		w.changeLocked(up > 0, nowNs)
	}
	st.Asked, st.Up, st.Masters, st.Fault = true, up, masters, err
	if up == 0 && !w.logged && w.faults.Due(nowNs) > 0 {
		w.logged = true
		hint := "until it does, calls are answered as --on-store-error says; no restart is required"
		if f, ok := errors.AsType[*Failed](err); ok && f.Reason == Auth {
			hint = hintOn(Auth)
		}
		w.config.Log.Error("the store does not answer", "error", err, "store", st.Store, "on-store-error", st.Policy.String(),
			"hint", hint)
	}
}

// changeLocked logs the first result, and each that differs from the one before.
func (w *Checker) changeLocked(up bool, nowNs int64) {
	switch st := &w.last; {
	case up && !st.Asked:
		w.config.Log.Info("the store answers", "store", st.Store)
	case up && w.logged:
		w.config.Log.Info("the store answers again", "store", st.Store, "after", time.Duration(nowNs-st.SinceNs).Round(time.Millisecond).String())
	}
	w.last.SinceNs, w.logged = nowNs, false
}

func (w *Checker) Keys() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.Keys
}

// Health returns the result of the last check, with present statistics.
func (w *Checker) Health() store.Health {
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

// addConnections adds the pool's statistics of a server, if the pool still has it.
func addConnections(s *store.ServerStats, all []store.ServerStats) {
	full := store.ServerStats{Circuit: "closed"}
	if i := slices.IndexFunc(all, func(other store.ServerStats) bool { return other.Addr == s.Addr }); i >= 0 {
		full = all[i]
	}
	full.Addr, full.Queued, full.InFlight, full.RoundTripNs = s.Addr, s.Queued, s.InFlight, s.RoundTripNs
	*s = full
}

// failures counts the calls that the store did not decide for one reason.
type failures struct {
	lines  often.Counter
	logged uint64 // calls
}

// noteFailures logs the calls left to the policy, at most once a minute for each reason.
func (w *Checker) noteFailures(all map[store.Reason]uint64) {
	nowNs := w.config.Now()
	for reason, total := range all {
		if reason == WrongType { // a mistake of the client, which has the error
			continue
		}
		f := w.failures[reason]
		if f == nil {
			f = &failures{}
			w.failures[reason] = f
		}
		if total == f.logged || f.lines.Due(nowNs) == 0 {
			continue
		}
		w.config.Log.Warn("the store did not decide some calls", "reason", string(reason), "calls", total-f.logged,
			"on-store-error", w.config.Policy.String(), "hint", hintOn(reason))
		f.logged = total
	}
}

func hintOn(reason store.Reason) string {
	switch reason {
	case Timeout:
		return "find out why its servers, or the network, take longer than --store-timeout; such a call may have been charged"
	case Network, CircuitOpen:
		return "find out why its servers cannot be reached"
	case QueueFull:
		return "the servers are overloaded: add some"
	case Auth:
		return "give the password's file to --store-password-file: SIGHUP reads it again, and a new flag requires a restart; " +
			"or correct the user of --store, or its rights, which docs/TUNING.md lists"
	case NoScripting:
		return "its servers must have EVALSHA and SCRIPT LOAD, and allow them; docs/TUNING.md lists the rights"
	case OutOfMemory:
		return "its servers are full: raise their maxmemory, or set their maxmemory-policy to volatile-ttl"
	case ReadOnly:
		return "the server is a replica: --store must name a master, sentinels or a cluster"
	case Cluster:
		return "the cluster moves slots, or some have no master: see CLUSTER INFO there"
	case Loading:
		return "a server loads its data; wait"
	case Replicas:
		return "fewer replicas than --store-wait have answered in time; the calls were charged"
	default:
		return "with --on-store-error=error, calls get the server's own words"
	}
}
