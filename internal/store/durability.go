package store

import (
	"errors"
	"time"
)

// ErrSaving is that a snapshot is being written already.
var ErrSaving = errors.New("store: a snapshot is being written already")

// NoSync is the interval of one who leaves it to the system when what was written reaches the disk.
const NoSync time.Duration = -1

// Durability is what is kept of a store on a disk, and how. Times are in Unix nanoseconds of the server's
// clock, 0 for never.
type Durability struct {
	Interval time.Duration // between two syncs; 0: before each reply; NoSync

	Loading       bool // what was kept is being read, and clients must wait
	LoadBeganNs   int64
	LoadTookNs    int64
	LoadBytes     int64 // of the files that are read
	LoadedBytes   int64
	LoadedKeys    int64 // live ones, once it is done
	ClockOffsetNs int64 // that the server's clock is ahead of the system's, which went back while the server was down

	Saving         bool // a snapshot is being written
	SaveBeganNs    int64
	LastSaveNs     int64 // when the last snapshot stood
	LastSaveTookNs int64 // -1 before the first
	LastSaveErr    error // of the last attempt; nil if it went well
	Saves          uint64

	// Fault is why the disk does not have what it should: nothing more is promised until a new generation of
	// files stands. It is nil while all is well.
	Fault        error
	FaultSinceNs int64
	Faults       uint64 // since the start

	SyncedNs       int64 // all changes until then are on the disk, or with NoSync with the system
	Syncs          uint64
	LastSyncTookNs int64
	WrittenBytes   uint64 // since the start, to logs and snapshots
	Records        uint64 // since the start, to logs
	SinceSave      uint64 // records since the last snapshot was begun
	Generation     uint64 // the number of the log that is written
	SnapshotBytes  int64  // of the snapshot that a start would read; 0 for none
	LogBytes       int64  // of the logs that it would read
	WaitingReplies int64  // that are held until a sync
}
