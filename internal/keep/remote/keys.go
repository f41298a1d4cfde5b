package remote

import (
	"context"
	"slices"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/engine"
	"cellserver/internal/keep/remote/known"
	"cellserver/internal/keep/remote/script"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// errCrossSlot is Redis's own for keys that no step can have in common.
var errCrossSlot = store.Failure{Line: "CROSSSLOT Keys in request don't hash to the same slot"}

// errTooLarge is for keys whose states no step can have in common.
var errTooLarge = store.Failure{Line: "ERR the states of the keys have more than 4 MiB, which is too much for one step; nothing was charged"}

// deed is what is to be done to a key's state in one step: one of a request, an operation and a setting.
type deed struct {
	nowNs     int64 // by the caller's clock
	request   *store.Request
	operation *limiter.Operation
	set       *setting
}

// setting is what SetIf is given and returns.
type setting struct {
	to     limiter.State
	when   store.Condition
	before limiter.State
	found  bool
}

// check returns an error for what the servers' clocks are too coarse for.
func (d *deed) check(callersTime bool) error {
	switch {
	case callersTime:
	case d.request != nil && tooFast(&d.request.Rule),
		d.operation != nil && (d.operation.Verb == limiter.Reserve || d.operation.Verb == limiter.Wait) && leaksTooFast(d.operation.Funnel):
		return errTooFast
	}
	return nil
}

// do does it, and may be called again for another state: then that is what was done.
func (d *deed) do(s *limiter.State, serverNs int64) (changed bool, err error) {
	byNs := d.nowNs - serverNs
	switch {
	case d.request != nil:
		q := d.request
		q.Result, changed, err = q.Rule.Decide(s, serverNs, q.Quantity)
		return changed, err
	case d.operation != nil:
		return d.operate(s, serverNs, byNs)
	}
	w := d.set
	if w.before, w.found = (limiter.State{}), s.ExpiresNs > serverNs; w.found {
		w.before = script.Owned(*s, byNs)
	}
	to := script.Owned(w.to, -byNs)
	if !w.when.Holds(w.found) || !w.found && to.ExpiresNs <= serverNs {
		return false, nil
	}
	*s = to
	return true, nil
}

// effect is what the deed may do to a funnel's TAT.
func (d *deed) effect() known.Effect {
	switch {
	case d.request != nil && d.request.Quantity < 0:
		return known.Lowered
	case d.request != nil:
		return known.Raised
	case d.operation == nil:
		return known.Replaced
	}
	switch o := d.operation; o.Verb {
	case limiter.Wait:
		if o.Quantity < 0 {
			return known.Lowered
		}
		return known.Raised
	case limiter.Reserve, limiter.Look, limiter.Acquire, limiter.Release, limiter.Renew, limiter.Holders,
		limiter.Add, limiter.Fill, limiter.Level, limiter.Expire:
		return known.Raised
	default: // Commit and GiveBack, which may give back units from before those that were taken ahead
		return known.Replaced
	}
}

// doing does the deed, and returns what came of it.
func (d *deed) doing(s *limiter.State, serverNs int64) (o engine.Did, err error) {
	o.Changed, err = d.do(s, serverNs)
	switch {
	case d.request != nil:
		o.Limited = d.request.Result.Limited
	case d.operation != nil:
		o.Limited, o.Count = d.operation.Requests() && d.operation.Result.Limited, d.operation.Count
	}
	return o, err
}

// follow returns the course of a state after the deed has changed it.
func (d *deed) follow(c limiter.Course, s *limiter.State) limiter.Course {
	if d.set != nil {
		return c.Set(s)
	}
	return c.Did(s)
}

// operate does the operation with its time by the servers' clock.
func (d *deed) operate(s *limiter.State, serverNs, byNs int64) (changed bool, err error) {
	o := d.operation
	atNs := o.AtNs
	if atNs != limiter.NeverNs {
		o.AtNs = funnel.Shift(atNs, -byNs)
	}
	changed, err = o.Do(s, serverNs)
	if o.Verb == limiter.Look {
		atNs = funnel.Shift(o.AtNs, byNs)
	}
	o.AtNs = atNs
	return changed, err
}

// answer sets the request's error, and returns it.
func (d *deed) answer(err error) error {
	if d.request != nil {
		if d.request.Err = err; err != nil {
			d.request.Result = funnel.Result{}
		}
	}
	return err
}

// outcome is what a request for units has come to.
type outcome struct {
	kind     limiter.Kind
	quantity int64
	limited  bool
}

// outcome returns what is counted of it, if it was a request for units.
func (d *deed) outcome() (o outcome, is bool) {
	if q := d.request; q != nil {
		return outcome{q.Rule.Kind, q.Quantity, q.Result.Limited}, true
	}
	if d.operation == nil {
		return o, false
	}
	switch op := d.operation; op.Verb {
	case limiter.Wait:
		return outcome{limiter.Funnel, op.Quantity, op.Result.Limited}, true
	case limiter.Reserve:
		return outcome{limiter.Reserving, op.Quantity, op.Result.Limited}, true
	case limiter.Acquire:
		return outcome{limiter.Concurrency, 1, op.Result.Limited}, true
	default:
		return o, false
	}
}

// copied returns a deed that another goroutine may do.
func (d *deed) copied() deed {
	c := deed{nowNs: d.nowNs}
	switch {
	case d.request != nil:
		c.request = &store.Request{Rule: d.request.Rule, Quantity: d.request.Quantity}
	case d.operation != nil:
		o := *d.operation
		c.operation = &o
	default:
		c.set = &setting{to: script.Owned(d.set.to, 0), when: d.set.when}
	}
	return c
}

// take takes the answers of a copy.
func (d *deed) take(c *deed) {
	switch {
	case d.request != nil:
		d.request.Result, d.request.Err = c.request.Result, c.request.Err
	case d.operation != nil:
		*d.operation = *c.operation
	default:
		d.set.before, d.set.found = c.set.before, c.set.found
	}
}

// Operate implements store.Keys.
func (s *Store) Operate(nowNs int64, key store.Key, o *limiter.Operation) error {
	return s.do(key, &deed{nowNs: nowNs, operation: o})
}

// SetIf implements store.Keys.
func (s *Store) SetIf(nowNs int64, key store.Key, to limiter.State, when store.Condition) (before limiter.State, found bool, err error) {
	w := &setting{to: to, when: when}
	err = s.do(key, &deed{nowNs: nowNs, set: w})
	return w.before, w.found, err
}

// Entry implements store.Keys.
func (s *Store) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	st, ok, err := s.State(nowNs, key)
	return store.Entry{Kind: st.Kind, ExpiresNs: st.ExpiresNs}, ok, err
}

// State implements store.Keys.
func (s *Store) State(nowNs int64, key store.Key) (st limiter.State, ok bool, err error) {
	serverNs, at, err := s.read(context.Background(), nowNs, []string{s.name(key)})
	if err != nil {
		return limiter.State{}, false, err
	}
	if f := &at[0]; f.Err != nil || f.State.ExpiresNs <= serverNs {
		return limiter.State{}, false, f.Err
	}
	st = at[0].State
	limiter.Shift(&st, nowNs-serverNs)
	return st, true, nil
}

// Delete implements store.Keys. It is one step for all keys that one slot has, or one server that is no cluster's.
func (s *Store) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	for _, names := range s.steps(keys) {
		heads, serverNs, err := s.call(context.Background(), names[0], s.scripts.RemoveCall(nowNs, names))
		for _, name := range names {
			s.known.Learn(name, known.Replaced, nil, 0)
		}
		if err != nil {
			return deleted, err
		}
		if len(heads) != len(names) {
			return deleted, limiter.ErrWrongType
		}
		for _, head := range heads {
			text, _ := head.(string)
			if _, expiresNs, ok := script.ReadHead(text); ok && expiresNs > serverNs {
				deleted++
			}
		}
	}
	return deleted, nil
}

// maxRemoved is how many keys a script removes: others wait for the server meanwhile.
const maxRemoved = 1000

// steps returns the names of keys, each once, by what is done in one step.
func (s *Store) steps(keys []store.Key) [][]string {
	known := make(map[string]struct{}, len(keys))
	bySlot, slots := map[uint16][]string{}, []uint16(nil)
	for i := range keys {
		name, slot := s.name(keys[i]), uint16(0)
		if _, is := known[name]; is {
			continue
		}
		known[name] = struct{}{}
		if s.Pool.Clustered() {
			slot = s.Pool.Slot(name)
		}
		if bySlot[slot] == nil {
			slots = append(slots, slot)
		}
		bySlot[slot] = append(bySlot[slot], name)
	}
	steps := make([][]string, 0, len(slots))
	for _, slot := range slots {
		steps = slices.AppendSeq(steps, slices.Chunk(bySlot[slot], maxRemoved))
	}
	return steps
}
