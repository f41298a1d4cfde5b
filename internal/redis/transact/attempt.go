package transact

import "cellserver/internal/store"

// Stage is where transactions take place.
type Stage struct {
	Store       store.Store
	Txs         store.Transactor // that it is
	Now         func() int64
	Clients     func() int // how many are connected
	MaxKeyBytes int
}

// Mode is how an attempt finds its keys, or that there is none.
type Mode uint8

const (
	// Snapshot is the state in which the keys were at one time. Others may change them meanwhile, and then what was
	// written is not kept.
	Snapshot Mode = iota
	// Held keeps others from the keys.
	Held
	// GiveUp is the end of all attempts.
	GiveUp
)

// Verdict is what becomes of an attempt.
type Verdict uint8

const (
	// Keep keeps what was written, unless somebody has changed the keys.
	Keep Verdict = iota
	// Drop ends the attempts with nothing written.
	Drop
	// Again is as if somebody had changed the keys.
	Again
)

// Optimistically lets do work on a snapshot of the keys, so that nobody waits for them meanwhile, and again, as next says,
// when somebody has changed one of them before its writes are in. It is false if next gave up; then nothing was written.
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

// Hold lets do work while others wait for the keys, so it must be short.
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
