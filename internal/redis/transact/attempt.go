package transact

import "cellserver/internal/store"

// Stage is the place of transactions.
type Stage struct {
	Store       store.Store
	Txs         store.Transactor // nil if the store is none
	Now         func() int64
	Clients     func() int // number of connections
	MaxKeyBytes int
}

// Mode is an attempt's access to its keys.
type Mode uint8

const (
	// Snapshot reads the keys as of one time. A concurrent change makes the attempt fail.
	Snapshot Mode = iota
	// Held makes others wait for the keys.
	Held
	// GiveUp ends the attempts.
	GiveUp
)

// Verdict is the outcome of an attempt.
type Verdict uint8

const (
	// Keep commits, unless the keys have changed.
	Keep Verdict = iota
	// Drop ends the attempts without writing.
	Drop
	// Again repeats, as after a conflict.
	Again
)

// Optimistically runs do on a snapshot, so that nobody waits, and repeats it, as next decides, after a
// conflict. It returns false, with nothing written, if next gave up.
func (s Stage) Optimistically(keys []store.Key, do func(in *Space) Verdict, next func(conflicts int) Mode) (done bool) {
	mode := Snapshot
	for conflicts := 1; mode != GiveUp; conflicts++ {
		if s.attempt(keys, mode, do) {
			return true
		}
		mode = next(conflicts)
	}
	return false
}

// Hold runs do while others wait for the keys: it must be short.
func (s Stage) Hold(keys []store.Key, do func(in *Space) Verdict) { s.attempt(keys, Held, do) }

func (s Stage) attempt(keys []store.Key, mode Mode, do func(in *Space) Verdict) (done bool) {
	nowNs := s.Now()
	tx := s.Txs.Begin(nowNs, keys)
	defer tx.Rollback()
	if mode == Snapshot {
		tx.Release()
	}
	switch do(&Space{Keys: tx, NowNs: nowNs, Held: mode == Held}) {
	case Keep:
		return tx.Commit()
	case Drop:
		return true
	default:
		return false
	}
}
