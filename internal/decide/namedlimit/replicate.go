package namedlimit

import (
	"errors"
)

// maxRecorded bounds the changes of overrides that are recorded; with more, everything counts as changed.
const maxRecorded = 1000

// recorded is what has changed of limits defined by commands, for replicas.
type recorded struct {
	on          bool
	all         bool // instead of the others
	definitions bool
	overrides   []KeyOverride
}

func (c *recorded) definitionsLocked() { c.definitions = c.definitions || c.on }

func (c *recorded) overrideLocked(o *KeyOverride) {
	switch {
	case !c.on || c.all:
	case len(c.overrides) == maxRecorded:
		c.all, c.overrides = true, nil
	default:
		c.overrides = append(c.overrides, *o)
	}
}

// Changes is a change of what commands have defined.
type Changes struct {
	All         bool         // replaces everything
	Definitions []Definition // all of them, by name; nil for no change
	Overrides   []KeyOverride
}

// Record starts recording changes for TakeRecorded, which first returns everything, or stops it.
func (r *Registry) Record(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = recorded{on: on, all: on}
}

// TakeRecorded returns the changes since its last call, and false if there are none. It skips one that is
// being written, unless wait is set.
func (r *Registry) TakeRecorded(wait bool) (t Changes, has bool) {
	if wait {
		r.mu.Lock()
	} else if !r.mu.TryLock() {
		return t, false
	}
	defer r.mu.Unlock()
	now := r.recorded
	r.recorded = recorded{on: now.on}
	switch {
	case now.all:
		return r.everythingLocked(), true
	case now.definitions:
		t.Definitions = sortedByName(r.byCommand)
	}
	t.Overrides = now.overrides
	return t, t.Definitions != nil || t.Overrides != nil
}

func (r *Registry) Everything() Changes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.everythingLocked()
}

func (r *Registry) everythingLocked() Changes {
	t := Changes{All: true, Definitions: sortedByName(r.byCommand)}
	for o := range r.eachOverrideLocked() {
		t.Overrides = append(t.Overrides, o)
	}
	return t
}

// Apply adopts the changes of another server. In memory it does so whatever becomes of the error, which is of
// the data directory.
func (r *Registry) Apply(t Changes) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Definitions != nil || t.All {
		r.led = t.Definitions
		next := make(map[string]Definition, len(t.Definitions))
		for _, d := range t.Definitions {
			if _, ok := r.byFile[d.Name]; !ok { // this server's file wins, as it would at a start
				next[d.Name] = d
			}
		}
		err = r.writeLocked(next)
		r.byCommand = next
		r.recorded.definitionsLocked()
	}
	if t.All {
		clear(r.overrides)
		r.overridden.Store(0)
		r.recorded.all = r.recorded.on
	}
	for _, o := range t.Overrides {
		r.setOverrideLocked(o)
		r.recorded.overrideLocked(&o)
	}
	if t.Definitions != nil || t.All {
		r.publishLocked()
	} else {
		for _, o := range t.Overrides {
			r.publishOverrideLocked(&o)
		}
	}
	return errors.Join(err, r.keepAppliedLocked(&t))
}

// uncoverLocked adds the leader's definitions by commands that the file no longer has, and reports whether
// there are any. A server that does not follow decides by itself.
func (r *Registry) uncoverLocked(byCommand map[string]Definition) (isAny bool) {
	if r.config.Refusal == nil || r.config.Refusal() == nil {
		r.led = nil
	}
	for _, d := range r.led {
		_, has := byCommand[d.Name]
		if _, ok := r.byFile[d.Name]; !ok && !has {
			r.config.Log.Info("a limit set by CL.LIMIT SET on the leader is in force, as the file no longer has it", "limit", d.Name, "file", r.config.Path)
			byCommand[d.Name], isAny = d, true
		}
	}
	return isAny
}

// keepAppliedLocked writes applied overrides to the data directory.
func (r *Registry) keepAppliedLocked(t *Changes) error {
	if r.config.Keeper == nil {
		return nil
	}
	if t.All {
		err := r.config.Keeper.Rewrite(sortedByName(r.byCommand), r.eachOverrideLocked())
		r.unsure, r.unsureKeys = err != nil, err != nil
		return err
	}
	for _, o := range t.Overrides {
		if err := r.config.Keeper.KeepOverride(o, r.NumOverrides(), r.eachOverrideLocked()); err != nil {
			r.unsureKeys = true
			return err
		}
	}
	return nil
}
