package execute

import (
	"bytes"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// oneKey is the state of a program's key as the store.Keys of its commands.
type oneKey struct{ *programRun }

func (k oneKey) is(key *store.Key) bool {
	return key.DB == k.key.DB && bytes.Equal(key.Name, k.key.Name)
}

func (k oneKey) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		q.End(k.Apply(nowNs, q.Key, q))
	}
	return nil
}

// Apply does a step. The payload may be a buffer of the step's, which the next one uses.
func (k oneKey) Apply(nowNs int64, key store.Key, step store.Step) error {
	if !k.is(&key) {
		return errProgram
	}
	s := k.state
	changed, err := step.Do(s, nowNs)
	if err != nil {
		return err
	}
	if changed {
		k.changed = true
		if n := len(s.Payload); n > 0 && (cap(k.payload) == 0 || &s.Payload[0] != &k.payload[:1][0]) {
			k.payload = append(k.payload[:0], s.Payload...)
			s.Payload = k.payload
		}
	}
	if out := step.Outcome(); out.Requests {
		k.requests++
		k.outcome = out
	}
	return nil
}

func (k oneKey) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	if !k.is(&key) {
		return e, false, errProgram
	}
	if k.state.ExpiresNs <= nowNs {
		return store.Entry{ExpiresNs: nowNs}, false, nil
	}
	return store.Entry{Kind: k.state.Kind, ExpiresNs: k.state.ExpiresNs}, true, nil
}

func (k oneKey) State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
	if !k.is(&key) {
		return s, false, errProgram
	}
	if k.state.ExpiresNs <= nowNs {
		return limiter.State{ExpiresNs: nowNs}, false, nil
	}
	s = *k.state
	s.Payload = bytes.Clone(s.Payload)
	return s, true, nil
}

func (k oneKey) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	for i := range keys {
		if !k.is(&keys[i]) {
			return deleted, errProgram
		}
		if k.state.ExpiresNs > nowNs {
			*k.state = limiter.State{ExpiresNs: nowNs, Payload: k.payload[:0]}
			k.changed = true
			deleted++
		}
	}
	return deleted, nil
}

// Save implements store.Restorer.
func (k oneKey) Save() (undo func()) {
	was, changed := *k.state, k.changed
	was.Payload = bytes.Clone(was.Payload)
	return func() { *k.state, k.changed = was, changed }
}
