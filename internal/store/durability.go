package store

import (
	"errors"
	"time"
)

var ErrSaving = errors.New("store: a snapshot is being written already")

// NoSync leaves syncing to the operating system.
const NoSync time.Duration = -1

// Durability is the state of a store's persistence. Times are Unix nanoseconds of the server's clock, 0 for
// never.
type Durability struct {
	Interval time.Duration // between syncs; 0 syncs before each reply, or NoSync

	Loading       bool // clients must wait for the loading
	LoadBeganNs   int64
	LoadTookNs    int64
	LoadBytes     int64 // of the files to load
	LoadedBytes   int64
	LoadedKeys    int64 // live ones after loading
	ClockOffsetNs int64 // the server's clock minus the system's, which went back during the downtime

	Saving         bool // a snapshot is under way
	SaveBeganNs    int64
	LastSaveNs     int64 // completion of the last snapshot
	LastSaveTookNs int64 // -1 before the first
	LastSaveErr    error // of the last attempt, or nil
	Saves          uint64

	// Fault is the cause of the disk's lag, until a new generation of files is complete; or nil.
	Fault        error
	FaultSinceNs int64
	Faults       uint64 // since the start

	SyncedNs       int64 // time up to which changes are on disk, or with NoSync handed to the system
	Syncs          uint64
	LastSyncTookNs int64
	WrittenBytes   uint64 // to logs and snapshots since the start
	Records        uint64 // to logs since the start
	SinceSave      uint64 // records since the last snapshot began
	Generation     uint64 // number of the newest log that the manifest names; 0 for none
	Sequence       uint64 // of that log's next frame
	Renewing       bool   // states were replaced, and no manifest names a snapshot of them yet
	SnapshotBytes  int64  // of the snapshot to load at a start; 0 for none
	LogBytes       int64  // of the logs to load at a start
	WaitingReplies int64  // that wait for a sync
}
