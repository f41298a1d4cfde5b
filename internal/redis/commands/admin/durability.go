package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// savePoll is the interval between attempts to start a snapshot while another is being written.
const savePoll = 50 * time.Millisecond

// save is SAVE. Only its own client waits for the snapshot.
func (k *Server) save(c execute.Call, _ [][]byte) error {
	var failure error
	return c.Until(func(_ context.Context, finish func()) {
		done := func(err error) {
			failure = err
			finish()
		}
		if err := k.Keeper.Save(done); err != nil {
			done(err)
		}
	}, 0, func(c execute.Call) error {
		if failure != nil {
			return saveFailed(failure)
		}
		return c.OK()
	})
}

func saveFailed(err error) error {
	if errors.Is(err, store.ErrSaving) {
		return reply.Error("ERR Background save already in progress")
	}
	return reply.Error("ERR the snapshot failed: " + resp.PrintableN([]byte(err.Error()), maxReasonBytes))
}

// bgSave is BGSAVE [SCHEDULE].
func (k *Server) bgSave(c execute.Call, args [][]byte) error {
	scheduled := len(args) == 2 && glob.Fold(args[1]) == "schedule"
	if len(args) > 1 && !scheduled {
		return reply.ErrSyntax
	}
	err := k.Keeper.Save(func(error) {})
	behind := scheduled && errors.Is(err, store.ErrSaving)
	switch {
	case behind && k.saveScheduled.CompareAndSwap(false, true):
		k.saveBehind()
	case err != nil && !behind:
		return saveFailed(err)
	}
	if behind || c.HoldsKeys() { // Redis begins nothing in EXEC
		c.Reply().Status("Background saving scheduled")
	} else {
		c.Reply().Status("Background saving started")
	}
	return nil
}

// saveBehind starts a snapshot once the current one has ended.
func (k *Server) saveBehind() {
	if errors.Is(k.Keeper.Save(func(error) {}), store.ErrSaving) {
		time.AfterFunc(savePoll, k.saveBehind)
		return
	}
	k.saveScheduled.Store(false)
}

// bgRewriteAOF is BGREWRITEAOF, the same as BGSAVE: a snapshot replaces the logs.
func (k *Server) bgRewriteAOF(c execute.Call, _ [][]byte) error {
	switch err := k.Keeper.Save(func(error) {}); {
	case errors.Is(err, store.ErrSaving):
		return reply.Error("ERR Background append only file rewriting already in progress")
	case err != nil:
		return saveFailed(err)
	case c.HoldsKeys():
		c.Reply().Status("Background append only file rewriting scheduled")
	default:
		c.Reply().Status("Background append only file rewriting started")
	}
	return nil
}

// lastSave replies with the time of the last snapshot or, as in Redis, of the start.
func (k *Server) lastSave(c execute.Call, _ [][]byte) error {
	c.Reply().Int(k.lastSaveSec(k.diskStatus()))
	return nil
}

func (k *Server) diskStatus() store.Durability {
	if k.Keeper == nil {
		return store.Durability{LastSaveTookNs: -1}
	}
	return k.Keeper.Status()
}

func (k *Server) lastSaveSec(st store.Durability) int64 {
	return max(st.LastSaveNs, k.StartedNs) / int64(time.Second)
}

// waitAOF is WAITAOF numlocal numreplicas timeout.
func (k *Server) waitAOF(c execute.Call, args [][]byte) error {
	const isDisabled = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
	local, err := argument.Int(args[1])
	if err != nil {
		return err
	}
	if local < 0 || local > 1 {
		return reply.Error("ERR value is out of range, value must between 0 and 1")
	}
	if replicas, ok := resp.ParseInt(args[2]); !ok || replicas < 0 {
		return reply.Error("ERR value is out of range, must be positive")
	}
	timeout, err := milliseconds(args[3])
	switch {
	case err != nil:
		return err
	case local > 0 && k.Keeper == nil:
		return reply.Error(isDisabled)
	case local == 0 || c.HoldsKeys():
		replySynced(c, k.alwaysSynced())
		return nil
	}
	var synced atomic.Bool
	return c.Until(func(ctx context.Context, finish func()) {
		k.syncs.wait(ctx, k.Keeper.Sync, func() {
			synced.Store(true)
			finish()
		})
	}, timeout, func(c execute.Call) error {
		replySynced(c, synced.Load())
		return nil
	})
}

// alwaysSynced reports whether every reply so far was preceded by a sync.
func (k *Server) alwaysSynced() bool {
	st := k.diskStatus()
	return k.Keeper != nil && st.Interval == 0 && st.Fault == nil
}

func replySynced(c execute.Call, synced bool) {
	c.Reply().Array(2)
	c.Reply().Int(int64(flag(synced)))
	c.Reply().Int(0)
}

// milliseconds parses a timeout; 0 waits without end.
func milliseconds(arg []byte) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	ms, ok := resp.ParseInt(arg)
	switch {
	case !ok:
		return 0, reply.Error("ERR timeout is not an integer or out of range")
	case ms < 0:
		return 0, reply.Error("ERR timeout is negative")
	}
	return time.Duration(min(ms, most)) * time.Millisecond, nil
}

// saveAndShutDown is SHUTDOWN SAVE. If the snapshot fails, only FORCE shuts down.
func (k *Server) saveAndShutDown(c execute.Call, conn execute.Connection, forced bool) error {
	var failure error
	return c.Until(func(ctx context.Context, finish func()) {
		k.saveWhenFree(ctx, func(err error) {
			failure = err
			finish()
		})
	}, 0, func(execute.Call) error {
		if failure != nil {
			k.Log.Error("the snapshot for a client's SHUTDOWN SAVE failed", "client", conn.Client().Addr(), "error", failure, "forced", forced)
			if !forced {
				return reply.Error("ERR Errors trying to SHUTDOWN. Check logs.")
			}
		}
		k.shutDown(conn)
		return nil
	})
}

// saveWhenFree starts a snapshot, after the current one, unless ctx ends before.
func (k *Server) saveWhenFree(ctx context.Context, done func(error)) {
	switch err := k.Keeper.Save(done); {
	case errors.Is(err, store.ErrSaving) && ctx.Err() == nil:
		time.AfterFunc(savePoll, func() { k.saveWhenFree(ctx, done) })
	case err != nil:
		done(err)
	}
}

// syncQueue lets many callers share one sync at a time. Callers that give up take no memory while the disk
// hangs. The zero value is ready. It is safe for concurrent use.
type syncQueue struct {
	mu        sync.Mutex           // rank 90: guards all below
	syncing   bool                 // on behalf of now
	now, next map[*func()]struct{} // finish
}

// wait calls finish once all earlier changes are on the disk, unless ctx ends before.
func (q *syncQueue) wait(ctx context.Context, toDisk func(done func()), finish func()) {
	q.mu.Lock()
	if q.next == nil {
		q.next = map[*func()]struct{}{}
	}
	q.next[&finish] = struct{}{}
	first := !q.syncing
	q.syncing = true
	q.mu.Unlock()
	context.AfterFunc(ctx, func() { q.leave(&finish) })
	if first {
		q.begin(toDisk)
	}
}

// begin starts a sync for the callers since the last one began.
func (q *syncQueue) begin(toDisk func(done func())) {
	q.mu.Lock()
	q.now, q.next = q.next, nil
	q.mu.Unlock()
	toDisk(func() {
		ended, again := q.end()
		for finish := range ended {
			(*finish)()
		}
		if again {
			q.begin(toDisk)
		}
	})
}

// end removes and returns the callers of the sync that has ended, and whether others wait for the next.
func (q *syncQueue) end() (ended map[*func()]struct{}, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended, q.now = q.now, nil
	q.syncing = len(q.next) > 0
	return ended, q.syncing
}

func (q *syncQueue) leave(finish *func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.now, finish)
	delete(q.next, finish)
}

// infoPersistence writes Redis's fields that apply here. A snapshot replaces the logs, so it is both a save
// and a rewrite of the append-only file.
func infoPersistence(t *infoText) {
	st := t.diskStatus()
	saved := status(st.LastSaveErr)
	if st.Fault != nil {
		saved = status(st.Fault) // a snapshot would clear it
	}
	seconds := func(ns int64) int64 { return ns / int64(time.Second) }
	lastSec, currentSec := int64(-1), int64(-1)
	if st.LastSaveTookNs >= 0 {
		lastSec = seconds(st.LastSaveTookNs)
	}
	if st.Saving {
		currentSec = seconds(t.nowNs - st.SaveBeganNs)
	}
	t.fields("loading", flag(st.Loading), "async_loading", 0, "rdb_changes_since_last_save", st.SinceSave,
		"rdb_bgsave_in_progress", flag(st.Saving), "rdb_last_save_time", t.lastSaveSec(st), "rdb_last_bgsave_status", saved,
		"rdb_last_bgsave_time_sec", lastSec, "rdb_current_bgsave_time_sec", currentSec, "rdb_saves", st.Saves,
		"rdb_last_load_keys_loaded", st.LoadedKeys, "aof_enabled", flag(t.Keeper != nil), "aof_rewrite_in_progress", flag(st.Saving),
		"aof_rewrite_scheduled", flag(t.saveScheduled.Load()), "aof_last_rewrite_time_sec", lastSec, "aof_current_rewrite_time_sec", currentSec,
		"aof_last_bgrewrite_status", saved, "aof_rewrites", st.Saves, "aof_last_write_status", status(st.Fault))
	if t.Keeper == nil {
		return
	}
	t.fields("aof_current_size", st.SnapshotBytes+st.LogBytes, "aof_base_size", st.SnapshotBytes, "aof_pending_rewrite", 0)
	if st.Loading {
		infoLoading(t, st)
	}
	infoDisk(t, st)
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

func status(err error) string {
	if err != nil {
		return "err"
	}
	return "ok"
}

// infoLoading writes Redis's fields of a start in progress.
func infoLoading(t *infoText, st store.Durability) {
	total, loaded := max(st.LoadBytes, 1), min(st.LoadedBytes, st.LoadBytes)
	tookNs, leftSec := t.nowNs-st.LoadBeganNs, 1.0
	if loaded > 0 {
		leftSec = float64(tookNs) / float64(loaded) * float64(total-loaded) / float64(time.Second)
	}
	t.fields("loading_start_time", st.LoadBeganNs/int64(time.Second), "loading_total_bytes", st.LoadBytes,
		"loading_loaded_bytes", loaded, "loading_loaded_perc", fmt.Sprintf("%.2f", 100*float64(loaded)/float64(total)),
		"loading_eta_seconds", int64(leftSec))
}

// infoDisk writes fields that Redis does not have.
func infoDisk(t *infoText, st store.Durability) {
	t.fields("cell_fsync_interval", intervalText(st.Interval), "cell_disk_status", status(st.Fault), "cell_disk_faults", st.Faults)
	if st.Fault != nil {
		t.fields("cell_disk_fault", resp.PrintableN([]byte(st.Fault.Error()), maxReasonBytes), "cell_disk_fault_since", st.FaultSinceNs/int64(time.Second))
	}
	t.fields("cell_log_generation", st.Generation, "cell_log_records", st.Records, "cell_written_bytes", st.WrittenBytes,
		"cell_syncs", st.Syncs, "cell_last_sync_time", st.SyncedNs/int64(time.Second), "cell_last_sync_usec", st.LastSyncTookNs/int64(time.Microsecond),
		"cell_waiting_replies", st.WaitingReplies, "cell_load_msec", st.LoadTookNs/int64(time.Millisecond),
		"cell_clock_ahead_msec", st.ClockOffsetNs/int64(time.Millisecond))
}

// intervalText formats an interval as --fsync-interval does.
func intervalText(interval time.Duration) string {
	if interval == store.NoSync {
		return "no"
	}
	return interval.String()
}
