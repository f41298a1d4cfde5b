package observe

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Slowlog keeps recent slow calls. It is safe for concurrent use.
type Slowlog struct {
	maxLen atomic.Int64

	mu      sync.Mutex // guards all below
	entries list.List  // of SlowEntry, newest first
	lastID  int64
}

// SlowEntry is a slow call or batch.
type SlowEntry struct {
	ID, UnixSec, DurationUs int64
	Args                    []string
	Addr, Name              string // of the client
}

// MaxSlowlogLen bounds slowlog-max-len: an entry may be 6 KiB.
const MaxSlowlogLen = 1 << 14

func (l *Slowlog) add(e SlowEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.lastID
	l.lastID++
	l.entries.PushFront(e)
	for int64(l.entries.Len()) > l.maxLen.Load() {
		l.entries.Remove(l.entries.Back())
	}
}

// Latest returns up to n entries, newest first; a negative n returns all.
func (l *Slowlog) Latest(n int64) []SlowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []SlowEntry
	for at := l.entries.Front(); at != nil && int64(len(found)) != n; at = at.Next() {
		found = append(found, at.Value.(SlowEntry))
	}
	return found
}

func (l *Slowlog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len()
}

// Reset drops the entries; numbering goes on.
func (l *Slowlog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

func (l *Slowlog) MaxLen() int64 { return l.maxLen.Load() }

// SetMaxLen changes slowlog-max-len; the next entry drops the excess.
func (l *Slowlog) SetMaxLen(n int64) { l.maxLen.Store(n) }
