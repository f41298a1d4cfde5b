package persist

// Found is what a start has found in the directory; the zero value for nothing, or for damage.
type Found struct {
	Generation uint64 // number of the newest log
	Sequence   uint64 // of its next frame
}

// Found returns what has been loaded.
func (k *Keeper) Found() Found {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.found
}

// Renew begins a new generation at once, as the states were replaced: the files have others. Status says when
// a manifest names it.
func (k *Keeper) Renew() {
	k.mu.Lock()
	k.renewals++
	k.mu.Unlock()
	k.wake()
}

// renew abandons files without the latest replacement of states.
func (r *keeping) renew() {
	r.mu.Lock()
	latest := r.renewals
	r.mu.Unlock()
	if latest != r.renewal {
		r.renewal = latest
		r.leave()
	}
}

// announce reports that a start would find something else.
func (k *Keeper) announce() {
	if k.config.Stands != nil {
		k.config.Stands()
	}
}
