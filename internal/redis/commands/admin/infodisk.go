package admin

import (
	"fmt"
	"time"

	"cellserver/internal/resp"
	"cellserver/internal/store"
)

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
