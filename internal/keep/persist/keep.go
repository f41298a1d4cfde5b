package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/store"
)

const (
	// roundInterval is the interval of rounds without a sync interval.
	roundInterval = time.Second
	// markInterval bounds the age of the log's clock without changes.
	markInterval = 10 * time.Second

	// checkInterval is the interval of checks, before a write, that the log is still there: some disks sync
	// faster.
	checkInterval = time.Millisecond
	// lookInterval is the interval of checks that all files are still there.
	lookInterval = time.Second

	leastRetry = 100 * time.Millisecond
	mostRetry  = 5 * time.Second
	// saveRetry is the pause after a failed snapshot.
	saveRetry = time.Minute

	// mostWaiting bounds the bytes of changes that wait for a disk that hangs; with more, there is a new
	// generation.
	mostWaiting = 64 << 20

	// maxLogs bounds the logs that a start reads, approximately.
	maxLogs = 16
)

// keeping is the state of Run's goroutine, which writes and syncs changes in rounds.
type keeping struct {
	*Keeper
	feed *changes.Feed // of the changes
	log  *log          // may be nil
	// sound says that a manifest names the log, so that synced data is durable.
	sound    bool
	stands   manifest  // last one written without an error
	next     frame     // header of a new log: unused number and sequence
	damaged  []string  // all files, if any was damaged: they are set aside, not removed
	snapshot *snapshot // under way, or nil

	unsynced  bool  // written data
	checkedNs int64 // last check of the log before a write
	markedNs  int64 // of the last frame
	retryNs   int64 // of the next try of a new generation
	backoff   time.Duration
	saveNs    int64    // of the next try of a snapshot after a failure
	failed    uint64   // its number
	lost      bool     // other files may be lost with ours
	tried     manifest // last one written, with or without an error
	renewal   uint64   // the replacement of states that the files are to have
	saidNs    int64    // of the last log line about the fault
}

func (k *Keeper) keep(ctx context.Context, l loaded, ready func()) error {
	r := &keeping{Keeper: k, stands: l.manifest, next: l.next, damaged: l.damaged, backoff: leastRetry}
	if k.config.Loaded != nil {
		offsetNs := k.config.Loaded(l.next.clockNs)
		k.update(func(st *store.Durability) { st.ClockOffsetNs, st.LoadBeganNs = offsetNs, st.LoadBeganNs+offsetNs })
	}
	r.feed = k.config.Changes.NewFeed(k.wake, mostWaiting)
	r.begin(l)
	k.ready(l)
	ready()
	ticker, looks := time.NewTicker(cmp.Or(max(k.config.Interval, 0), roundInterval)), time.NewTicker(lookInterval)
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

// isDue reports whether a time is as much later than another one, or before it: the clock may be set back.
func isDue(nowNs, lastNs int64, after time.Duration) bool {
	return nowNs-lastNs >= int64(after) || nowNs < lastNs
}

// mostAwaited bounds a sync's delay for company.
const mostAwaited = time.Millisecond

// awaitCompany waits for the clients answered by the last sync, who may soon ask for the next, up to half a
// sync's duration. Otherwise two halves of the clients would alternate, each waiting for the other's sync.
func (r *keeping) awaitCompany(ctx context.Context) {
	if !r.Confirms() || !r.lacksCompany() {
		return
	}
	late := time.After(min(time.Duration(r.Status().LastSyncTookNs/2), mostAwaited))
	for r.lacksCompany() {
		select {
		case <-ctx.Done():
			return
		case <-late:
			return
		case <-r.kick:
		}
	}
}

func (r *keeping) lacksCompany() (lacks bool) {
	r.locked(func() { lacks = len(r.waiting) > 0 && len(r.waiting) < r.company })
	return lacks
}

// begin goes on after the loaded log.
func (r *keeping) begin(l loaded) {
	if len(r.damaged) > 0 {
		r.Renew()
		r.renew()
		return
	}
	l.manifest.beside = r.withBeside(nil)
	g, err := begin(r.config.Dir, l)
	r.next.generation++
	if err != nil {
		r.fail(err)
		return
	}
	r.log, r.sound = g, true
	r.standing()
}

// standing records a written manifest.
func (r *keeping) standing() {
	r.stands = r.log.manifest.clone()
	r.next.generation = r.log.number() + 1
	r.update(func(st *store.Durability) { st.Generation, st.Sequence = r.log.number(), r.log.w.next.sequence })
	r.announce()
}

func (r *keeping) round() {
	r.renew()
	nowNs := r.config.Now()
	if !r.sound && r.snapshot == nil && isDue(nowNs, r.retryNs-int64(mostRetry), mostRetry) {
		r.beginGeneration()
	}
	waiting := r.takeWaiting()
	if r.log != nil {
		r.write(nowNs, waiting > 0)
	}
	if !r.sound {
		r.locked(func() { r.waiting, r.syncing = append(r.syncing, r.waiting...), nil }) // they wait for the next sync
		r.nameBeside()
		return
	}
	hung := false
	r.update(func(st *store.Durability) {
		st.SyncedNs, st.Sequence, st.LogBytes = nowNs, r.log.w.next.sequence, r.log.bytes()
		r.company, hung = len(r.waiting)+len(r.syncing), st.Fault != nil
	})
	if hung { // it works again
		r.mended()
	}
	r.answerSynced()
	r.nameBeside()
	if r.sound && r.wantsSnapshot() {
		r.replaceLogs()
	}
}

func (r *keeping) write(nowNs int64, wanted bool) {
	before, complete := r.log.w.bytes, true
	err, records := error(nil), 0
	if isDue(nowNs, r.checkedNs, checkInterval) { // another server may have read the log's end
		r.checkedNs, err = nowNs, r.config.Dir.Check(logName(r.log.number()))
	}
	if err == nil {
		records, err = r.log.add(nowNs, newPacer(r.config.Yield, nil), func(visit func(changes.Piece) error) (err error) {
			complete, err = r.feed.Round(visit)
			return err
		})
	}
	if err == nil && r.log.w.bytes == before && isDue(nowNs, r.markedNs, markInterval) {
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
		r.config.Log.Info("a snapshot is written in place of changes one by one, and nothing is lost: " +
			"all keys were replaced, or more were deleted at once than are listed")
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

// leave abandons the log: a new generation's snapshot will have its missing changes.
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

// fail abandons the generation after a disk error.
func (r *keeping) fail(err error) {
	r.leave()
	nowNs := r.config.Now()
	r.retryNs = nowNs + int64(r.backoff)
	r.backoff = min(2*r.backoff, mostRetry)
	time.AfterFunc(time.Duration(r.retryNs-nowNs), r.wake)
	r.answerSaves(err)
	first := false
	r.locked(func() { first = r.faultyLocked(nowNs, err) })
	if r.freeze(); first {
		r.announce()
	}
	r.lost = r.lost || errors.Is(err, disk.ErrGone)
	if first || isDue(nowNs, r.saidNs, time.Minute) {
		r.saidNs = nowNs
		r.config.Log.Error("what changes is not kept: the data directory cannot be written",
			"error", err, "hint", hintOn(err))
	}
}

// mended records a complete new generation.
func (r *keeping) mended() {
	st := r.Status()
	if st.Fault == nil {
		return
	}
	nowNs := r.config.Now()
	r.update(func(st *store.Durability) { st.Fault, st.FaultSinceNs = nil, 0 })
	r.backoff = leastRetry
	r.freeze()
	r.announce()
	r.config.Log.Info("what changes is kept again", "after", time.Duration(nowNs-st.FaultSinceNs).Round(time.Millisecond))
}

func (r *keeping) finish() error {
	r.renew()
	if r.snapshot != nil && (r.sound || r.log == nil) {
		r.snapshot.cancel()
		r.endSnapshot(<-r.snapshot.ended)
	}
	r.takeWaiting() // later requests may be for changes after the last round
	if r.lastRound(); !r.sound && r.Status().Fault == nil {
		r.lastRound() // some removals were not recorded
	}
	if !r.sound {
		return fmt.Errorf("persist: the latest changes are not on the disk: %w", cmp.Or(r.Status().Fault, ErrEnded))
	}
	r.update(func(st *store.Durability) { st.Sequence = r.log.w.next.sequence })
	r.answerSynced()
	return r.log.w.file.Close()
}

// lastRound is a round that waits for everything.
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
	r.nameBeside()
}
