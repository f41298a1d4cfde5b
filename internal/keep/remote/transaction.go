package remote

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// tx implements store.RemoteTransaction: it reads states in one step, changes copies, and writes them in one
// step if all still are as they were read. Otherwise that step returns the states that differ, on which it
// begins anew: the loser of a conflict needs one more round trip to write, and the winner two for its next
// write. The steps that changed a state are taken a second time on commit, for script.ChangeOf. It
// belongs to one goroutine.
type tx struct {
	store    *Store
	readAt   time.Time
	serverNs int64 // of the read
	byNs     int64 // lead of the caller's clock
	index    map[string]int
	states   []txState
	counts   []limiter.Outcome // counted on commit
	held     int               // bytes of payloads
	ended    bool

	saves   bool      // there is a Save to go back to
	journal []txState // before each change since the first Save
}

type txState struct {
	at      int    // in the transaction
	name    string // on the servers
	found   script.Found
	state   limiter.State // in the transaction, by the servers' clock
	written bool
	charged bool          // it was written for more than blocks
	notes   limiter.Notes // of the holds, by the steps

	from  limiter.State // from which the steps have made the state
	steps []txStep
	times int // of the last one, so that copies of the state can share them
}

// txStep is consecutive equal steps.
type txStep struct {
	step  store.Step // a copy
	times int        // unless it is the last one
}

// took adds a step that has changed the state.
func (st *txState) took(step store.Step) {
	if step.Traits().Absolute {
		st.replaced()
		return
	}
	n := len(st.steps)
	if q, is := step.(*store.Request); is && n > 0 {
		if as, is := st.steps[n-1].step.(*store.Request); is && as.Rule == q.Rule && as.Quantity == q.Quantity {
			st.times++
			return
		}
	}
	if n > 0 {
		st.steps[n-1].times = st.times
	}
	c, _ := step.Copy()
	st.steps, st.times = append(st.steps, txStep{step: c}), 1
}

// replaced notes that the state is the same at all times.
func (st *txState) replaced() { st.from, st.steps = st.state, nil }

// again takes the steps on another state, and reports whether each has changed it.
func (st *txState) again(s *limiter.State, nowNs, byNs int64) bool {
	for i, t := range st.steps {
		if i == len(st.steps)-1 {
			t.times = st.times
		}
		for range t.times {
			if !engine.Again(t.step, s, nowNs, byNs) {
				return false
			}
		}
	}
	return true
}

// OneStep implements store.Remote.
func (s *Store) OneStep(keys []store.Key) error {
	if !s.Pool.Clustered() {
		return nil
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = s.name(keys[i])
	}
	if !s.Pool.OneStep(names) {
		return errCrossSlot
	}
	return nil
}

func (s *Store) Begin(ctx context.Context, nowNs int64, keys []store.Key) (store.RemoteTransaction, error) {
	t := &tx{store: s, index: make(map[string]int, len(keys))}
	var names []string
	for i := range keys {
		if _, known := t.index[string(keys[i].Name)]; !known {
			t.index[string(keys[i].Name)] = len(names)
			names = append(names, s.name(keys[i]))
		}
	}
	if len(names) == 0 {
		t.serverNs = nowNs
		return t, nil
	}
	if !s.Pool.OneStep(names) {
		return nil, errCrossSlot
	}
	serverNs, found, err := s.read(ctx, nowNs, names)
	if err != nil {
		return nil, err
	}
	t.states = make([]txState, len(names))
	for i, name := range names {
		t.states[i] = txState{at: i, name: name, found: found[i]}
	}
	t.begin(nowNs, serverNs)
	return t, nil
}

// begin begins, perhaps anew, on the states found by a call that was sent at nowNs.
func (t *tx) begin(nowNs, serverNs int64) {
	t.readAt, t.serverNs, t.byNs = time.Now(), serverNs, nowNs-serverNs
	t.counts, t.held, t.saves, t.journal = nil, 0, false, nil
	for i := range t.states {
		st := &t.states[i]
		*st = txState{at: i, name: st.name, found: st.found, state: st.found.State, from: st.found.State}
		t.held += len(st.state.Payload)
	}
}

func (t *tx) NowNs() int64 { return t.serverNs + t.byNs }

func (t *tx) state(key *store.Key) *txState {
	i, ok := t.index[string(key.Name)]
	if !ok || t.ended {
		panic("remote: key not given to the transaction's Begin, or transaction has ended")
	}
	return &t.states[i]
}

// Throttle implements store.Keys, at the time of the read, as all below.
func (t *tx) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		q.End(t.do(t.state(&q.Key), q))
	}
	return nil
}

func (t *tx) Apply(_ int64, key store.Key, step store.Step) error { return t.do(t.state(&key), step) }

// do applies a step to a state, on a copy of the payload, which Save may have to restore.
func (t *tx) do(st *txState, step store.Step) error {
	if err := st.err(); err != nil {
		return err
	}
	if t.store.leaksTooFast(step.Traits().IntervalNs) {
		return errTooFast
	}
	s := st.state
	s.Payload = bytes.Clone(s.Payload)
	notes := st.notes
	s.Notes = &notes
	changed, err := engine.Do(step, &s, t.serverNs, t.byNs)
	if s.Notes = nil; changed {
		if !t.keep(st, s) {
			return store.ErrTooLarge
		}
		st.notes = notes
		st.took(step)
		st.charged = st.charged || !beginsBlocks(step)
	}
	if err == nil {
		t.counts = append(t.counts, step.Outcome())
	}
	return err
}

// beginsBlocks reports whether a step that has changed a state is a denial, which holds if its blocks are not
// stored.
func beginsBlocks(step store.Step) bool {
	q, is := step.(*store.Request)
	if !is {
		return false
	}
	rule := q.Rule
	return rule.ForgoBlock(&q.Result)
}

func (st *txState) err() error {
	if st.written {
		return nil
	}
	return st.found.Err
}

// keep stores a key's changed state. It returns false if the states are too large.
func (t *tx) keep(st *txState, s limiter.State) bool {
	more := len(s.Payload) - len(st.state.Payload)
	if more > 0 && t.held+more > script.MaxStepBytes {
		return false
	}
	if s.ExpiresNs <= t.serverNs {
		s, more = limiter.State{ExpiresNs: t.serverNs}, -len(st.state.Payload)
	}
	if t.saves {
		t.journal = append(t.journal, *st)
	}
	t.held += more
	st.state, st.written = s, true
	return true
}

// live reports whether a key exists. err is for a foreign value.
func (t *tx) live(st *txState) (live bool, err error) {
	if err = st.err(); err != nil {
		return false, err
	}
	return st.state.ExpiresNs > t.serverNs, nil
}

func (t *tx) Entry(_ int64, key store.Key) (e store.Entry, ok bool, err error) {
	s, ok, err := t.State(0, key)
	return store.Entry{Kind: s.Kind, ExpiresNs: s.ExpiresNs}, ok, err
}

func (t *tx) State(_ int64, key store.Key) (s limiter.State, ok bool, err error) {
	st := t.state(&key)
	if ok, err = t.live(st); !ok {
		return limiter.State{}, false, err
	}
	return limiter.Shifted(st.state, t.byNs), true, nil
}

func (t *tx) Delete(_ int64, keys []store.Key) (deleted int, err error) {
	for i := range keys {
		if _, err := t.live(t.state(&keys[i])); err != nil {
			return 0, err
		}
	}
	for i := range keys {
		st := t.state(&keys[i])
		if live, _ := t.live(st); live {
			t.keep(st, limiter.State{ExpiresNs: t.serverNs})
			st.replaced()
			st.charged = true
			deleted++
		}
	}
	return deleted, nil
}

// Save implements store.Restorer. Each change has its own payload, so copies of the states are enough.
func (t *tx) Save() (undo func()) {
	t.saves = true
	changes, counts, held := len(t.journal), len(t.counts), t.held
	return func() {
		for i := len(t.journal) - 1; i >= changes; i-- {
			t.states[t.journal[i].at] = t.journal[i]
		}
		t.journal, t.counts, t.held = t.journal[:changes], t.counts[:counts], held
	}
}

// Commit implements store.RemoteTransaction. A transaction without writes happened at its read.
func (t *tx) Commit(ctx context.Context) (done bool, err error) {
	if t.ended {
		return false, nil
	}
	if slices.ContainsFunc(t.states, func(st txState) bool { return st.written }) {
		if done, err = t.write(ctx); !done {
			t.ended = err != nil
			return false, err
		}
	}
	t.ended = true
	for _, o := range t.counts {
		t.store.counts.outcome(o)
	}
	return true, nil
}

func (t *tx) write(ctx context.Context) (done bool, err error) {
	w := t.store.scripts.NewSwap(t.serverNs, len(t.states))
	mostNs := t.store.engine.LastNs(t.serverNs, funnel.Shift(t.serverNs, int64(time.Since(t.readAt))))
	for i := range t.states {
		st := &t.states[i]
		if !st.written {
			w.Keep(st.name, &st.found)
			continue
		}
		c := script.ChangeOf(st.from, st.state, t.serverNs, mostNs, func(s *limiter.State, nowNs int64) bool {
			return st.again(s, nowNs, t.byNs)
		})
		w.Change(st.name, &st.found, &c)
	}
	sentNs := t.store.Now()
	rest, serverNs, err := t.store.call(ctx, w.Call.Keys[0], &w.Call)
	switch {
	case err == nil:
		if done = len(rest) == 0; done {
			t.countHolds()
		}
	case errors.As(err, &noMemory{}) && !slices.ContainsFunc(t.states, func(st txState) bool { return st.charged }):
		done, err = true, nil // denials hold without their blocks
	}
	for i := range t.states {
		if t.states[i].written && (done || err != nil) {
			t.store.filter.Learn(t.states[i].name, limiter.Replaces, nil, 0)
		}
	}
	if !done && err == nil {
		err = t.lost(rest, sentNs, serverNs)
	}
	return done, err
}

// lost begins anew by the reply to a swap that was sent at sentNs and not done.
func (t *tx) lost(rest []any, sentNs, serverNs int64) error {
	script.Differing(rest, func(at int, now script.Found) {
		if at >= 0 && at < len(t.states) {
			t.states[at].found = now
			t.store.filter.Learn(t.states[at].name, limiter.Raises, &now.State, sentNs)
		}
	})
	if t.store.CallersTime {
		sentNs = t.NowNs()
	}
	if t.begin(sentNs, serverNs); t.held > script.MaxStepBytes {
		return errTooLarge
	}
	return nil
}

// countHolds counts the holds whose time was over in the states that are written now.
func (t *tx) countHolds() {
	for i := range t.states {
		if st := &t.states[i]; st.written {
			t.store.note(st.name, &st.notes)
		}
	}
}
