package namedlimit

import (
	"errors"
)

// maxTold bounds the changes of overrides that wait to be told; with more, everything is told.
const maxTold = 1000

// told is what replicas have to be told of limits defined by commands.
type told struct {
	on          bool
	all         bool // instead of the others
	definitions bool
	overrides   []KeyOverride
}

func (t *told) definitionsLocked() { t.definitions = t.definitions || t.on }

func (t *told) overrideLocked(o *KeyOverride) {
	switch {
	case !t.on || t.all:
	case len(t.overrides) == maxTold:
		t.all, t.overrides = true, nil
	default:
		t.overrides = append(t.overrides, *o)
	}
}

// Told is a change of what commands have defined.
type Told struct {
	All         bool         // replaces everything
	Definitions []Definition // all of them, by name; nil for no change
	Overrides   []KeyOverride
}

// Tell starts recording changes for TakeTold, which first returns everything, or stops it.
func (r *Registry) Tell(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told{on: on, all: on}
}

// TakeTold returns the changes since its last call, and false if there are none. It waits for one that is
// being written only if told to.
func (r *Registry) TakeTold(wait bool) (t Told, has bool) {
	if wait {
		r.mu.Lock()
	} else if !r.mu.TryLock() {
		return t, false
	}
	defer r.mu.Unlock()
	now := r.told
	r.told = told{on: now.on}
	switch {
	case now.all:
		return r.everythingLocked(), true
	case now.definitions:
		t.Definitions = sortedByName(r.byCommand)
	}
	t.Overrides = now.overrides
	return t, t.Definitions != nil || t.Overrides != nil
}

// Everything returns all that commands have defined.
func (r *Registry) Everything() Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.everythingLocked()
}

func (r *Registry) everythingLocked() Told {
	t := Told{All: true, Definitions: sortedByName(r.byCommand)}
	for o := range r.eachOverrideLocked() {
		t.Overrides = append(t.Overrides, o)
	}
	return t
}

// Follow adopts what another server has told. In memory it does so whatever becomes of the error, which is of
// the data directory.
func (r *Registry) Follow(t Told) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.Definitions != nil || t.All {
		next := make(map[string]Definition, len(t.Definitions))
		for _, d := range t.Definitions {
			if _, ok := r.byFile[d.Name]; !ok { // this server's file wins, as it would at a start
				next[d.Name] = d
			}
		}
		err = r.writeLocked(next)
		r.byCommand = next
		r.told.definitionsLocked()
	}
	if t.All {
		clear(r.overrides)
		r.overridden.Store(0)
		r.told.all = r.told.on
	}
	for _, o := range t.Overrides {
		r.setOverrideLocked(o)
		r.told.overrideLocked(&o)
	}
	if t.Definitions != nil || t.All {
		r.publishLocked()
	} else {
		for _, o := range t.Overrides {
			r.publishOverrideLocked(&o)
		}
	}
	return errors.Join(err, r.keepFollowedLocked(&t))
}

// keepFollowedLocked writes followed overrides to the data directory.
func (r *Registry) keepFollowedLocked(t *Told) error {
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
