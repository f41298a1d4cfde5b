package metrics

import (
	"time"

	"cellserver/internal/store"
)

func (c *Config) collectPersistence(to sink) {
	status := c.Persistence
	to.truth("persistence_enabled", "1 with --data-dir; 0 without it, when a restart forgets all keys and there are no further persistence metrics.", status != nil)
	if status == nil {
		return
	}
	st := status()
	to.truth("persistence_loading", "1 while the data directory is loading and clients must wait.", st.Loading)
	to.value("persistence_loaded_keys", "Keys loaded at the start.", float64(st.LoadedKeys))
	to.seconds("persistence_load_duration_seconds", "Duration of loading at the start in seconds; 0 until it is done.", st.LoadTookNs)
	to.seconds("clock_offset_seconds", "Seconds by which the server's clock is ahead of the wall clock, which went back while the server was down.", st.ClockOffsetNs)

	to.seconds("persistence_sync_interval_seconds", "Value of --fsync-interval in seconds: 0 syncs before each reply, -1 leaves syncs to the system.", syncIntervalNs(&st))
	to.truth("persistence_disk_fault", "1 while changes do not reach the disk, until a new snapshot is complete.", st.Fault != nil)
	to.counter("persistence_disk_faults_total", "Failed writes and syncs.", st.Faults)
	to.seconds("persistence_lag_seconds", "Seconds since all changes were on the disk; normally at most the sync interval plus one sync.", lagNs(&st, c.Now()))
	to.counter("persistence_syncs_total", "Syncs of the log.", st.Syncs)
	to.seconds("persistence_last_sync_duration_seconds", "Duration of the last sync of the log in seconds.", st.LastSyncTookNs)
	to.counter("persistence_records_total", "Changes written to the log.", st.Records)
	to.counter("persistence_written_bytes_total", "Bytes written to the log and to snapshots.", st.WrittenBytes)
	to.value("persistence_waiting_replies", "Replies held back until a sync.", float64(st.WaitingReplies))
	to.value("persistence_log_bytes", "Size of the log that a start would read, in bytes.", float64(st.LogBytes))

	to.truth("persistence_snapshot_in_progress", "1 while a snapshot is being written.", st.Saving)
	to.truth("persistence_last_snapshot_failed", "1 if the last snapshot failed.", st.LastSaveErr != nil)
	to.counter("persistence_snapshots_total", "Snapshots completed.", st.Saves)
	to.seconds("persistence_last_snapshot_timestamp_seconds", "Unix time of the last completed snapshot; 0 if none since the start.", st.LastSaveNs)
	to.seconds("persistence_last_snapshot_duration_seconds", "Duration of the last snapshot in seconds; 0 if none since the start.", max(0, st.LastSaveTookNs))
	to.value("persistence_snapshot_bytes", "Size of the snapshot that a start would read, in bytes.", float64(st.SnapshotBytes))
}

func syncIntervalNs(st *store.Durability) int64 {
	if st.Interval == store.NoSync {
		return -int64(time.Second)
	}
	return int64(st.Interval)
}

// lagNs is 0 before the first sync: nothing changes while the directory loads.
func lagNs(st *store.Durability, nowNs int64) int64 {
	if st.SyncedNs == 0 {
		return 0
	}
	return max(0, nowNs-st.SyncedNs)
}

func (to sink) seconds(name, help string, ns int64) { to.value(name, help, float64(ns)/1e9) }
