package acl

import (
	"container/list"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultLogEntries is Redis's acllog-max-len.
	DefaultLogEntries = 128

	groupNs   = int64(60 * time.Second) // what is alike and no further apart is one entry
	groupScan = 10                      // among so many of the latest, as in Redis

	// maxFieldBytes bounds what an entry keeps of a client's bytes: before AUTH a name may have 16 KiB.
	maxFieldBytes = 1024
)

// Denial is something that was not allowed.
type Denial struct {
	Reason     Reason
	Context    string // toplevel, multi or lua
	Object     string // the command's full name, the key, the channel; of DeniedAuth, the command
	Username   string // of DeniedAuth, the name that was given
	ClientInfo string // the client in CLIENT LIST
}

// LogEntry is one line of ACL LOG: denials that are alike. Times are in nanoseconds since 1970.
type LogEntry struct {
	Denial    // the latest of them
	ID        int64
	Count     int64
	CreatedNs int64
	UpdatedNs int64
}

// AgeSeconds is how long ago the latest denial was, by the millisecond.
func (e *LogEntry) AgeSeconds(nowNs int64) float64 {
	return time.Duration(nowNs - e.UpdatedNs).Truncate(time.Millisecond).Seconds()
}

// Log keeps the latest denials.
type Log struct {
	mu         sync.Mutex // guards all of it
	entries    list.List  // of *LogEntry, the latest first
	nextID     int64
	maxEntries int
}

// NewLog returns a log that holds so many entries; none if that is 0.
func NewLog(maxEntries int) *Log {
	return &Log{maxEntries: maxEntries}
}

// SetMaxEntries changes how many entries it holds, and drops the oldest if there are more.
func (l *Log) SetMaxEntries(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maxEntries = n
	l.trimLocked()
}

// Add notes a denial. If there is a recent one that is alike, they become one entry.
func (l *Log) Add(nowNs int64, d Denial) {
	d.Object, d.Username = cut(d.Object), cut(d.Username)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.alikeLocked(nowNs, d); e != nil {
		entry := e.Value.(*LogEntry)
		entry.ClientInfo, entry.UpdatedNs = d.ClientInfo, nowNs
		entry.Count++
		l.entries.MoveToFront(e)
		return
	}
	l.entries.PushFront(&LogEntry{Denial: d, ID: l.nextID, Count: 1, CreatedNs: nowNs, UpdatedNs: nowNs})
	l.nextID++
	l.trimLocked()
}

func (l *Log) alikeLocked(nowNs int64, d Denial) *list.Element {
	e := l.entries.Front()
	for range groupScan {
		if e == nil {
			return nil
		}
		known := e.Value.(*LogEntry)
		d.ClientInfo = known.ClientInfo // the same user may come from elsewhere
		if apart := nowNs - known.UpdatedNs; known.Denial == d && apart <= groupNs && apart >= -groupNs {
			return e
		}
		e = e.Next()
	}
	return nil
}

func (l *Log) trimLocked() {
	for l.entries.Len() > max(l.maxEntries, 0) {
		l.entries.Remove(l.entries.Back())
	}
}

// Entries returns the latest entries, at most n, the latest first.
func (l *Log) Entries(n int) []LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var latest []LogEntry
	for e := l.entries.Front(); e != nil && len(latest) < n; e = e.Next() {
		latest = append(latest, *e.Value.(*LogEntry))
	}
	return latest
}

// Reset forgets all entries.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Init()
}

func cut(s string) string {
	if len(s) > maxFieldBytes {
		s = strings.Clone(s[:maxFieldBytes])
	}
	return s
}
