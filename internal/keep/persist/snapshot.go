package persist

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"

	"cellserver/internal/store"
)

// snapshot is one that is being written, on a goroutine of its own.
type snapshot struct {
	number  uint64
	anew    bool // the log of its number is named by no manifest until it stands
	beganNs int64
	cancel  context.CancelFunc
	hurry   atomic.Bool
	ended   chan snapshotEnd
	saves   []func(error) // who waits for it
}

// snapshotEnd is what has become of one.
type snapshotEnd struct {
	bytes int64
	err   error
}

// beginGeneration begins a log, and then a snapshot, which do not depend on what was written before.
func (r *keeping) beginGeneration() {
	err := r.regain()
	if err == nil {
		err = r.removeLeft()
	}
	if err != nil {
		r.fail(err)
		return
	}
	g, err := beginAnew(r.config.Dir, r.next)
	r.next.generation++
	if err != nil {
		r.fail(err)
		return
	}
	r.log = g
	r.config.Store.Changes(r.config.Now(), func(store.Change) {}) // the snapshot has them
	r.beginSnapshot(true)
}

// removeLeft makes room where generations have failed. What the directory has for a manifest is not known
// then. Where there is none it gets one, or what is begun next would look as if its manifest were lost.
func (r *keeping) removeLeft() error {
	there, err := readManifest(r.config.Dir)
	none, damaged := errors.Is(err, fs.ErrNotExist), len(r.damaged) > 0
	if err != nil && !none && !damaged {
		return nil
	}
	_ = tidy(r.config.Dir, func(name string) error { // what can be written is seen next
		if slices.Contains(r.damaged, name) {
			return nil
		}
		return r.config.Dir.Remove(name)
	}, &there, &r.stands)
	if none && !damaged {
		return r.writeManifest()
	}
	return nil
}

// wantsSnapshot reports whether one should replace the logs, or is asked for.
func (r *keeping) wantsSnapshot() bool {
	if r.snapshot != nil {
		return false
	}
	r.mu.Lock()
	asked := len(r.saves) > 0
	r.mu.Unlock()
	long := r.log.bytes() > max(2*r.stands.snapshot.bytes, r.config.LeastLogBytes) || len(r.stands.logs) > maxLogs
	return asked || long && r.config.Now() >= r.saveNs
}

// replaceLogs begins a snapshot, and a log that goes on behind it.
func (r *keeping) replaceLogs() {
	if r.unsynced {
		if err := r.sync(); err != nil {
			r.fail(err)
			return
		}
	}
	if r.log.number() != r.failed { // or there would be one log more for each attempt
		if err := r.log.rotate(); err != nil {
			r.next.generation++ // a manifest may name the log that was begun
			r.fail(err)
			return
		}
		r.standing()
	}
	r.beginSnapshot(false)
}

func (r *keeping) beginSnapshot(anew bool) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &snapshot{number: r.log.number(), anew: anew, beganNs: r.config.Now(), cancel: cancel, ended: make(chan snapshotEnd, 1)}
	r.update(func(st *store.Durability) { st.Saving, st.SaveBeganNs, st.SinceSave = true, s.beganNs, 0 })
	r.mu.Lock()
	s.saves, r.saves = r.saves, nil
	r.mu.Unlock()
	r.snapshot = s
	go func() {
		defer cancel()
		states := func(ctx context.Context, visit func(store.Change)) { r.config.Store.States(ctx, s.beganNs, visit) }
		bytes, err := writeSnapshot(ctx, r.config.Dir, s.number, s.beganNs, newPacer(r.config.Yield, &s.hurry), states)
		s.ended <- snapshotEnd{bytes, err}
	}()
}

// endSnapshot has the manifest name a snapshot that has been written.
func (r *keeping) endSnapshot(end snapshotEnd) {
	s := r.snapshot
	r.snapshot = nil
	err := end.err
	if errors.Is(err, context.Canceled) {
		err = ErrEnded
	}
	left := r.log == nil || r.log.number() != s.number // since it was begun
	switch {
	case left:
		err = ErrEnded
		_ = removeIfThere(r.config.Dir, snapshotName(s.number)) // it takes room, and nothing names it
	case err == nil:
		err = r.adopt(s, end.bytes)
	case s.anew:
		r.fail(err)
	default:
		_ = removeIfThere(r.config.Dir, snapshotName(s.number)) // it takes room, and nothing names it
		r.saveNs, r.failed = r.config.Now()+int64(saveRetry), s.number
	}
	nowNs := r.config.Now()
	r.update(func(st *store.Durability) {
		st.Saving, st.LastSaveErr, st.SaveBeganNs = false, err, 0
		if err == nil {
			st.LastSaveNs, st.LastSaveTookNs, st.Saves = nowNs, nowNs-s.beganNs, st.Saves+1
			st.SnapshotBytes, st.WrittenBytes = end.bytes, st.WrittenBytes+uint64(end.bytes)
		}
	})
	if err != nil && !errors.Is(err, ErrEnded) {
		r.config.Log.Error("cannot write a snapshot", "error", err)
	}
	for _, done := range s.saves {
		done(err)
	}
}

// adopt has the snapshot and the log of its number be what a start reads.
func (r *keeping) adopt(s *snapshot, bytes int64) error {
	if s.anew { // what has changed since must not be lacking
		if r.write(r.config.Now(), true); r.log == nil {
			return ErrEnded
		}
	}
	if len(r.damaged) > 0 {
		_ = r.setAside(manifestName) // if there is one, it may be what is damaged, and tells of the others
	}
	err := r.log.replaceBy(s.number, bytes)
	r.tried = r.log.manifest.clone()
	if err != nil {
		r.fail(err)
		return err
	}
	r.standing()
	r.sound, r.saveNs = true, 0
	err = r.log.tidy(func(name string) error {
		if slices.Contains(r.damaged, name) {
			return r.setAside(name)
		}
		return r.config.Dir.Remove(name)
	})
	r.damaged = nil
	if err != nil {
		r.config.Log.Warn("cannot remove files that are not needed any more from the data directory", "error", err)
	}
	r.mended()
	return nil
}
