package metrics

import (
	"errors"
	"testing"
	"time"

	"cellserver/internal/store"
)

const testNowNs = 1_700_000_000_000_000_000

// persists makes a server keep its keys on a disk.
func persists(st store.Durability) func(*Config) {
	return func(c *Config) {
		c.Now = func() int64 { return testNowNs }
		c.Persistence = func() store.Durability { return st }
	}
}

func TestPersistence(t *testing.T) {
	const sec = int64(time.Second)
	for _, tt := range []struct {
		name string
		st   store.Durability
		want map[string]float64
	}{
		{"loads", store.Durability{Interval: time.Second, Loading: true, LoadBeganNs: testNowNs - sec, LastSaveTookNs: -1}, map[string]float64{
			"persistence_loading": 1, "persistence_loaded_keys": 0, "persistence_load_duration_seconds": 0,
			"persistence_sync_interval_seconds": 1, "persistence_disk_fault": 0, "persistence_lag_seconds": 0,
			"persistence_last_snapshot_timestamp_seconds": 0, "persistence_last_snapshot_duration_seconds": 0,
		}},
		{"works", store.Durability{
			LoadTookNs: 5 * sec / 2, LoadedKeys: 10_000_000, ClockOffsetNs: 3600 * sec, LastSaveNs: testNowNs - 60*sec, LastSaveTookNs: 2 * sec,
			Saves: 3, SyncedNs: testNowNs - sec/4, Syncs: 100, LastSyncTookNs: sec / 1000, WrittenBytes: 5 << 30, Records: 1 << 20,
			SnapshotBytes: 3 << 30, LogBytes: 4 << 30, WaitingReplies: 7,
		}, map[string]float64{
			"persistence_loading": 0, "persistence_loaded_keys": 1e7, "persistence_load_duration_seconds": 2.5, "clock_offset_seconds": 3600,
			"persistence_sync_interval_seconds": 0, "persistence_disk_fault": 0, "persistence_disk_faults_total": 0,
			"persistence_lag_seconds": 0.25, "persistence_syncs_total": 100, "persistence_last_sync_duration_seconds": 0.001,
			"persistence_records_total": 1 << 20, "persistence_written_bytes_total": 5 << 30, "persistence_waiting_replies": 7,
			"persistence_log_bytes": 4 << 30, "persistence_snapshot_bytes": 3 << 30, "persistence_snapshot_in_progress": 0,
			"persistence_last_snapshot_failed": 0, "persistence_snapshots_total": 3,
			"persistence_last_snapshot_timestamp_seconds": testNowNs/1e9 - 60, "persistence_last_snapshot_duration_seconds": 2,
		}},
		{"the disk is full", store.Durability{
			Interval: store.NoSync, Fault: errors.New("no space left on device"), FaultSinceNs: testNowNs - 60*sec, Faults: 2,
			SyncedNs: testNowNs - 61*sec, Saving: true, LastSaveErr: errors.New("no space left on device"),
		}, map[string]float64{
			"persistence_sync_interval_seconds": -1, "persistence_disk_fault": 1, "persistence_disk_faults_total": 2,
			"persistence_lag_seconds": 61, "persistence_snapshot_in_progress": 1, "persistence_last_snapshot_failed": 1,
		}},
		{"the figures are newer than the time", store.Durability{SyncedNs: testNowNs + 1}, map[string]float64{"persistence_lag_seconds": 0}},
	} {
		tt.want["persistence_enabled"] = 1
		t.Run(tt.name, func(t *testing.T) {
			for name, want := range tt.want {
				newHarness(persists(tt.st)).expect(t, figure{name, nil, want})
			}
		})
	}
}
