package namedlimit

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// KeyOverride is an override by a command.
type KeyOverride struct {
	Limit, Key string
	Policy     Policy
	UntilNs    int64 // 0 for no end
	Removed    bool
}

// Override sets or removes the override of a key persistently, and reports whether it has replaced one.
func (r *Registry) Override(o KeyOverride) (found bool, err error) {
	err = r.command(func() error {
		if !o.Removed {
			if err := r.mayOverrideLocked(&o); err != nil {
				return err
			}
		}
		before := r.overrides[o.Limit][o.Key]
		found = before != nil && (before.UntilNs == 0 || before.UntilNs > r.config.Now())
		if before == nil && o.Removed && !r.unsureKeys {
			return nil
		}
		if before == nil && r.NumOverrides() >= MaxOverrides {
			if r.dropEndedLocked(); r.NumOverrides() >= MaxOverrides {
				return fmt.Errorf("%d overrides by commands exist, the maximum; delete some first", r.NumOverrides())
			}
		}
		return r.overrideLocked(o)
	})
	return found, err
}

func (r *Registry) mayOverrideLocked(o *KeyOverride) error {
	if r.Lookup([]byte(o.Limit)) == nil {
		return NoLimit(o.Limit)
	}
	if o.Policy.Plan != "" {
		if _, ok := r.plans[o.Policy.Plan]; !ok {
			return fmt.Errorf("no such plan '%s'; plans are defined in --limits-file", o.Policy.Plan)
		}
		return nil
	}
	return o.Policy.Check(r.config.Calendars)
}

// NoLimit returns the error for an unknown limit.
func NoLimit(name string) error {
	return fmt.Errorf("no such limit '%s'; define it by CL.LIMIT SET or in --limits-file", name)
}

// overrideLocked writes a change and then puts it in force.
func (r *Registry) overrideLocked(o KeyOverride) error {
	before := r.overrides[o.Limit][o.Key]
	r.setOverrideLocked(o)
	if r.config.Keeper != nil {
		err := r.config.Keeper.KeepOverride(o, r.NumOverrides(), r.eachOverrideLocked())
		r.unsureKeys = err != nil
		if err != nil {
			if before != nil {
				r.setOverrideLocked(*before)
			} else {
				r.setOverrideLocked(KeyOverride{Limit: o.Limit, Key: o.Key, Removed: true})
			}
			return fmt.Errorf("the data directory cannot be written, and nothing was changed: %w", err)
		}
	}
	r.recorded.overrideLocked(&o)
	r.publishOverrideLocked(&o)
	return nil
}

// publishOverrideLocked puts the override of a key in force.
func (r *Registry) publishOverrideLocked(o *KeyOverride) {
	if l := r.Lookup([]byte(o.Limit)); l != nil {
		next := *l
		r.builderLocked().change(&next, o.Key, r.overrides[o.Limit][o.Key])
		r.current.Store(r.current.Load().with(&next))
	}
}

func (r *Registry) setOverrideLocked(o KeyOverride) {
	of := r.overrides[o.Limit]
	if of == nil {
		of = map[string]*KeyOverride{}
		r.overrides[o.Limit] = of
	}
	before := len(of)
	if o.Removed {
		delete(of, o.Key)
	} else {
		of[o.Key] = &o
	}
	r.overridden.Add(int64(len(of) - before))
	if len(of) == 0 {
		delete(r.overrides, o.Limit)
	}
}

// dropEndedLocked forgets ended overrides; the next compaction leaves them out.
func (r *Registry) dropEndedLocked() {
	nowNs := r.config.Now()
	for limit, of := range r.overrides {
		before := len(of)
		for key, o := range of {
			if o.UntilNs != 0 && o.UntilNs <= nowNs {
				r.setOverrideLocked(KeyOverride{Limit: limit, Key: key, Removed: true})
			}
		}
		if l := r.Lookup([]byte(limit)); l != nil && len(of) < before {
			next := *l
			r.builderLocked().setKeys(&next, r.overrides[limit])
			r.current.Store(r.current.Load().with(&next))
		}
	}
}

func (r *Registry) eachOverrideLocked() iter.Seq[KeyOverride] {
	return func(yield func(KeyOverride) bool) {
		for _, of := range r.overrides {
			for _, o := range of {
				if !yield(*o) {
					return
				}
			}
		}
	}
}

// OverridesPage is the number of overrides that Overrides returns at once, about.
const OverridesPage = 1000

// Overrides returns some of a limit's overrides by commands in the order of their keys' hashes, and the next
// cursor, 0 after the last. It returns none, ended ones left out, for an unknown limit.
func (r *Registry) Overrides(limit string, cursor uint64) (next uint64, some []KeyOverride) {
	type hashed struct {
		hash uint64
		*KeyOverride
	}
	var found []hashed
	r.mu.Lock()
	nowNs := r.config.Now()
	for key, o := range r.overrides[limit] {
		if h := max(hashOf([]byte(key)), 1); h >= cursor && (o.UntilNs == 0 || o.UntilNs > nowNs) {
			found = append(found, hashed{h, o})
		}
	}
	r.mu.Unlock()
	slices.SortFunc(found, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
	for i, f := range found {
		if i >= OverridesPage && f.hash != found[i-1].hash {
			return f.hash, some
		}
		some = append(some, *f.KeyOverride)
	}
	return 0, some
}

// ErrReloaded reports a cursor from before a reload of the file.
var ErrReloaded = errors.New("the file of limits was reloaded since this cursor; begin with 0")

// FileOverrides returns some of a limit's overrides by the file in its order, each of one key or a pattern,
// and the next cursor, 0 after the last. A cursor has the reload in its upper half and a position in its
// lower one. It returns none for an unknown limit, and ErrReloaded.
func (r *Registry) FileOverrides(limit string, cursor uint64) (next uint64, some []Override, err error) {
	const half = 32
	t := r.current.Load() // without the lock, as EXEC may hold keys, and a change waits for the disk
	all, reload := t.byFile[limit].Overrides, uint64(t.reload)
	if cursor != 0 && cursor>>half != reload {
		return 0, nil, ErrReloaded
	}
	next = reload<<half | uint64(uint32(cursor))
	skip := int(uint32(cursor))
	for _, o := range all {
		n := max(len(o.Keys), 1)
		for i := min(skip, n); i < n; i++ {
			if len(some) == OverridesPage {
				return next, some, nil
			}
			one := o
			if len(o.Keys) > 0 {
				one.Keys = o.Keys[i : i+1]
			}
			some = append(some, one)
			next++
		}
		skip -= min(skip, n)
	}
	return 0, some, nil
}

// warnOfMissingLocked logs overrides by commands whose plans are gone.
func (r *Registry) warnOfMissingLocked() {
	missing := map[string]int{}
	for o := range r.eachOverrideLocked() {
		if _, ok := r.plans[o.Policy.Plan]; o.Policy.Plan != "" && !ok {
			missing[o.Policy.Plan]++
		}
	}
	for _, plan := range slices.Sorted(maps.Keys(missing)) {
		r.config.Log.Warn("overrides by CL.LIMIT OVERRIDE have no effect while their plan is not in the file of limits", "plan", plan, "overrides", missing[plan])
	}
}
