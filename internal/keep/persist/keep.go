package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

const (
	// roundInterval is between two rounds where no sync is asked for by the clock.
	roundInterval = time.Second
	// markInterval is how old the log's clock becomes at most while nothing changes.
	markInterval = 10 * time.Second

	// checkInterval is between two looks, in front of a write, at whether the log is still there: a sync
	// takes less on some disks.
	checkInterval = time.Millisecond
	// lookInterval is between two looks at whether all files are still there.
	lookInterval = time.Second

	leastRetry = 100 * time.Millisecond
	mostRetry  = 5 * time.Second
	// saveRetry is between two attempts to replace logs by a snapshot, where that fails.
	saveRetry = time.Minute

	// maxLogs is how many logs a start reads at most, or a few more.
	maxLogs = 16
)

// keeping is what Run's goroutine knows. In a round it has the log written what has changed, and synced.
type keeping struct {
	*Keeper
	log *log // nil while there is none
	// sound says that a manifest names the log, so that what is synced is kept.
	sound    bool
	stands   manifest  // the last that was written without an error
	next     frame     // what a log begins with that is begun now: its number and sequence have never been used
	damaged  []string  // the files that there were, if any was damaged: they are set aside instead of removed
	snapshot *snapshot // that is being written; nil without one

	unsynced  bool  // something was written
	checkedNs int64 // when the log was looked at before a write
	markedNs  int64 // when the last frame was
	retryNs   int64 // when a new generation may be tried
	backoff   time.Duration
	saveNs    int64    // when a snapshot may be tried, after one has failed
	failed    uint64   // that snapshot's number
	lost      bool     // files of others may have gone with ours
	tried     manifest // that was written last, with an error or without
	saidNs    int64    // when the fault was logged
}

// keep keeps what changes until ctx ends.
func (k *Keeper) keep(ctx context.Context, l loaded, ready func()) error {
	r := &keeping{Keeper: k, stands: l.manifest, next: l.next, damaged: l.damaged, backoff: leastRetry}
	if k.config.Loaded != nil {
		offsetNs := k.config.Loaded(l.next.clockNs)
		k.update(func(st *store.Durability) { st.ClockOffsetNs, st.LoadBeganNs = offsetNs, st.LoadBeganNs+offsetNs })
	}
	k.config.Store.Track(k.wake)
	r.begin(l)
	k.ready(l)
	ready()
	ticker, looks := time.NewTicker(r.interval()), time.NewTicker(lookInterval)
	defer ticker.Stop()
	defer looks.Stop()
	for {
		ended := (<-chan snapshotEnd)(nil)
		if r.snapshot != nil {
			ended = r.snapshot.ended
		}
		select {
		case <-ctx.Done():
			return r.finish()
		case <-ticker.C:
		case <-looks.C:
			if r.look() {
				continue
			}
		case <-k.kick:
			r.awaitCompany(ctx)
		case end := <-ended:
			r.endSnapshot(end)
		}
		r.round()
	}
}

func (k *Keeper) interval() time.Duration {
	if k.config.Interval > 0 {
		return k.config.Interval
	}
	return roundInterval
}

// mostAwaited bounds how long a sync waits for company.
const mostAwaited = time.Millisecond

// awaitCompany waits for those whom the last sync answered, and who may be about to ask for the next, but for no longer than half of
// what a sync takes: else two halves of the clients would take turns, each waiting for a sync of the other.
func (r *keeping) awaitCompany(ctx context.Context) {
	if !r.Confirms() || !r.lacksCompany() {
		return
	}
	late := time.NewTimer(min(time.Duration(r.Status().LastSyncTookNs/2), mostAwaited))
	defer late.Stop()
	for r.lacksCompany() {
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			return
		case <-r.kick:
		}
	}
}

func (r *keeping) lacksCompany() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0 && len(r.waiting) < r.company
}

// begin goes on behind what was loaded.
func (r *keeping) begin(l loaded) {
	if len(r.damaged) > 0 {
		r.leave()
		return
	}
	g, err := begin(r.config.Dir, l)
	r.next.generation++
	if err != nil {
		r.fail(err)
		return
	}
	r.log, r.sound = g, true
	r.standing()
}

// standing notes that the manifest has been written.
func (r *keeping) standing() {
	r.stands = r.log.manifest.clone()
	r.next.generation = r.log.number() + 1
}

// round brings what has changed to the disk, and wakes those who wait for that.
func (r *keeping) round() {
	nowNs := r.config.Now()
	if !r.sound && r.snapshot == nil && nowNs >= r.retryNs {
		r.beginGeneration()
	}
	waiting := r.takeWaiting()
	if r.log != nil {
		r.write(nowNs, waiting > 0)
	}
	if !r.sound {
		r.putBack()
		return
	}
	hung := false
	r.update(func(st *store.Durability) {
		st.SyncedNs, st.Generation, st.LogBytes = nowNs, r.log.number(), r.log.bytes()
		r.company, hung = len(r.waiting)+len(r.syncing), st.Fault != nil
	})
	if hung { // and has taken all now
		r.mended()
	}
	r.answerSynced()
	if r.wantsSnapshot() {
		r.replaceLogs()
	}
}

// write appends what has changed, and has it synced.
func (r *keeping) write(nowNs int64, wanted bool) {
	before, complete := r.log.w.bytes, true
	err, records := error(nil), 0
	if nowNs-r.checkedNs >= int64(checkInterval) { // or another server may have read the log's end
		r.checkedNs, err = nowNs, r.config.Dir.Check(logName(r.log.number()))
	}
	if err == nil {
		changes := func(visit func(store.Change)) { complete = r.config.Store.Changes(nowNs, visit) }
		records, err = r.log.add(nowNs, newPacer(r.config.Yield, nil), changes)
	}
	if err == nil && r.log.w.bytes == before && nowNs-r.markedNs >= int64(markInterval) {
		err = r.log.w.write(nowNs, nil)
	}
	written := r.log.w.bytes - before
	r.next.sequence = r.log.w.next.sequence
	if err == nil && written > 0 {
		r.unsynced, r.markedNs = true, nowNs
		r.update(func(st *store.Durability) {
			st.Records += uint64(records)
			st.SinceSave += uint64(records)
			st.WrittenBytes += uint64(written)
		})
	}
	if err == nil && r.unsynced && (wanted || r.config.Interval != store.NoSync) {
		err = r.sync()
	}
	switch {
	case err != nil:
		r.fail(err)
	case !complete:
		r.config.Log.Info("more keys are gone than were noted: a new snapshot is written")
		r.leave()
	}
}

func (r *keeping) sync() error {
	beganNs := r.config.Now()
	if err := r.log.w.sync(); err != nil {
		return err
	}
	r.unsynced = false
	r.update(func(st *store.Durability) { st.Syncs, st.LastSyncTookNs = st.Syncs+1, r.config.Now()-beganNs })
	return nil
}

// leave gives the log up: what it lacks will be in the snapshot of a new generation.
func (r *keeping) leave() {
	if r.log != nil {
		_ = r.log.w.file.Close() // nobody relies on it
	}
	if r.sound {
		r.tried = r.log.manifest.clone()
	}
	if r.snapshot != nil {
		r.snapshot.cancel()
	}
	r.log, r.sound, r.unsynced = nil, false, false
	r.wake()
}

// fail leaves the generation, as the disk does not take it.
func (r *keeping) fail(err error) {
	r.leave()
	nowNs := r.config.Now()
	r.retryNs = nowNs + int64(r.backoff)
	r.backoff = min(2*r.backoff, mostRetry)
	time.AfterFunc(time.Duration(r.retryNs-nowNs), r.wake)
	r.answerSaves(err)
	r.mu.Lock()
	first := r.faultyLocked(nowNs, err)
	r.mu.Unlock()
	r.freeze()
	r.lost = r.lost || errors.Is(err, disk.ErrGone)
	if first || nowNs-r.saidNs >= int64(time.Minute) {
		r.saidNs = nowNs
		r.config.Log.Error("what changes is not kept: the data directory cannot be written",
			"error", err, "hint", hintOn(err))
	}
}

// mended notes that a new generation stands.
func (r *keeping) mended() {
	st := r.Status()
	if st.Fault == nil {
		return
	}
	nowNs := r.config.Now()
	r.update(func(st *store.Durability) { st.Fault, st.FaultSinceNs = nil, 0 })
	r.backoff = leastRetry
	r.freeze()
	r.config.Log.Info("what changes is kept again", "after", time.Duration(nowNs-st.FaultSinceNs).Round(time.Millisecond))
}

// finish brings the last changes to the disk.
func (r *keeping) finish() error {
	if r.snapshot != nil && (r.sound || r.log == nil) {
		r.snapshot.cancel()
		r.endSnapshot(<-r.snapshot.ended)
	}
	r.takeWaiting() // who asks from now on may ask for what changes behind the last round
	if r.lastRound(); !r.sound && r.Status().Fault == nil {
		r.lastRound() // more keys were gone than were noted
	}
	if !r.sound {
		return fmt.Errorf("persist: the latest changes are not on the disk: %w", cmp.Or(r.Status().Fault, ErrEnded))
	}
	r.answerSynced()
	return r.log.w.file.Close()
}

// lastRound is a round in which whatever it takes is waited for.
func (r *keeping) lastRound() {
	r.look()
	if !r.sound && r.snapshot == nil {
		r.beginGeneration()
	}
	if r.snapshot != nil {
		r.snapshot.hurry.Store(true)
		r.endSnapshot(<-r.snapshot.ended)
	}
	if r.log != nil {
		r.markedNs = 0
		r.write(r.config.Now(), true)
	}
}
