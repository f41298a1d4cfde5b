package persist

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"

	"cellserver/internal/keep/changes"
	"cellserver/internal/store"
)

// snapshot is being written on a goroutine.
type snapshot struct {
	number  uint64
	renewal uint64 // the last replacement of states before it
	anew    bool   // no manifest names its log before its completion
	beganNs int64
	cancel  context.CancelFunc
	hurry   atomic.Bool
	ended   chan snapshotEnd
	saves   []func(error) // waiting callers
}

type snapshotEnd struct {
	bytes int64
	err   error
}

// beginGeneration begins a log and then a snapshot, independent of earlier files.
func (r *keeping) beginGeneration() {
	err := r.regain()
	if err == nil {
		err = r.removeLeft()
	}
	if err != nil {
		r.fail(err)
		return
	}
	g := &log{dir: r.config.Dir} // outside the manifest, until that names the snapshot
	err = g.create(r.next)
	r.next.generation++
	if err != nil {
		r.fail(err)
		return
	}
	r.log = g
	r.feed.Reset() // the snapshot covers them
	r.beginSnapshot(true)
}

// removeLeft removes files of failed generations. The directory's manifest is unknown then; a missing one is
// written, else it would look lost later.
func (r *keeping) removeLeft() error {
	there, err := readManifest(r.config.Dir)
	none, damaged := errors.Is(err, fs.ErrNotExist), len(r.damaged) > 0
	if err != nil && !none && !damaged {
		return nil
	}
	recovering, _ := isThere(r.config.Dir, recoveryName) // the next write shows errors
	_ = tidy(r.config.Dir, func(name string) error {
		if recovering || slices.Contains(r.damaged, name) {
			return nil
		}
		return r.config.Dir.Remove(name)
	}, &there, &r.stands)
	if none && !damaged {
		return r.writeManifest()
	}
	return nil
}

// wantsSnapshot reports whether logs are to be replaced or a snapshot is requested.
func (r *keeping) wantsSnapshot() bool {
	if r.snapshot != nil {
		return false
	}
	asked := false
	r.locked(func() { asked = len(r.saves) > 0 })
	long := r.log.bytes() > max(2*r.stands.snapshot.bytes, r.config.LeastLogBytes) || len(r.stands.logs) > maxLogs
	return asked || long && isDue(r.config.Now(), r.saveNs-int64(saveRetry), saveRetry)
}

// replaceLogs begins a snapshot and the log after it.
func (r *keeping) replaceLogs() {
	if r.unsynced {
		if err := r.sync(); err != nil {
			r.fail(err)
			return
		}
	}
	if r.log.number() != r.failed { // avoids one more log with each attempt
		if err := r.log.rotate(); err != nil {
			r.next.generation++ // a manifest may name the log just begun
			r.fail(err)
			return
		}
		r.standing()
	}
	r.beginSnapshot(false)
}

func (r *keeping) beginSnapshot(anew bool) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &snapshot{
		number: r.log.number(), renewal: r.renewal, anew: anew, beganNs: r.config.Now(), cancel: cancel, ended: make(chan snapshotEnd, 1),
	}
	r.update(func(st *store.Durability) {
		st.Saving, st.SaveBeganNs, st.SinceSave = true, s.beganNs, 0
		s.saves, r.saves = r.saves, nil
	})
	r.snapshot = s
	go func() {
		defer cancel()
		states := func(ctx context.Context, visit func(store.Change)) {
			r.config.Store.States(ctx, s.beganNs, func(c store.Change) {
				changes.Expire(&c, r.config.Now)
				visit(c)
			}, nil)
		}
		bytes, err := writeSnapshot(ctx, r.config.Dir, s.number, s.beganNs, newPacer(r.config.Yield, &s.hurry), states)
		s.ended <- snapshotEnd{bytes, err}
	}()
}

// endSnapshot names a written snapshot in the manifest.
func (r *keeping) endSnapshot(end snapshotEnd) {
	s := r.snapshot
	r.snapshot = nil
	err := end.err
	if errors.Is(err, context.Canceled) {
		err = ErrEnded
	}
	left := r.log == nil || r.log.number() != s.number // since its beginning
	switch {
	case left:
		err = ErrEnded
		_ = removeIfThere(r.config.Dir, snapshotName(s.number)) // it takes space, and nothing names it
	case err == nil:
		err = r.adopt(s, end.bytes)
	case s.anew:
		r.fail(err)
	default:
		_ = removeIfThere(r.config.Dir, snapshotName(s.number)) // it takes space, and nothing names it
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

// adopt makes the snapshot and the log of its number the files for a start.
func (r *keeping) adopt(s *snapshot, bytes int64) error {
	if s.anew { // later changes must be there, too
		if r.write(r.config.Now(), true); r.log == nil {
			return ErrEnded
		}
	}
	err := error(nil)
	if len(r.damaged) > 0 {
		err = beginRecovery(r.config.Dir)
	}
	if err == nil {
		r.log.manifest.beside = r.withBeside(r.log.manifest.beside)
		err = r.log.replaceBy(s.number, bytes)
		r.tried = r.log.manifest.clone()
	}
	if err != nil {
		r.fail(err)
		return err
	}
	r.locked(func() { r.renewed = s.renewal })
	r.sound, r.saveNs = true, 0
	r.standing()
	err = r.log.tidy(r.damaged)
	r.damaged = nil
	if err != nil {
		r.config.Log.Warn("cannot remove obsolete files from the data directory", "error", err)
	}
	r.mended()
	return nil
}
