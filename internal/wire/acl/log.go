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

	groupNs   = int64(60 * time.Second) // longest time between equal denials of one entry
	groupScan = 10                      // latest entries compared, as in Redis

	maxFieldBytes = 1024 // of a client's input in an entry: a name before AUTH may have 16 KiB
)

// Denial is a command, key, channel or authentication that was denied.
type Denial struct {
	Reason     Reason
	Context    string // toplevel, multi or lua
	Object     string // the command's full name, the key, the channel; for DeniedAuth, the command
	Username   string // for DeniedAuth, the given name
	ClientInfo string // the client in CLIENT LIST
}

// LogEntry is one entry of ACL LOG: a group of equal denials. Times are Unix nanoseconds.
type LogEntry struct {
	Denial    // the latest of them
	ID        int64
	Count     int64
	CreatedNs int64
	UpdatedNs int64
}

// AgeSeconds returns the age of the latest denial, truncated to milliseconds.
func (e *LogEntry) AgeSeconds(nowNs int64) float64 {
	return time.Duration(nowNs - e.UpdatedNs).Truncate(time.Millisecond).Seconds()
}

// Log keeps the latest denials.
type Log struct {
	mu         sync.Mutex // rank 90: guards all below
	entries    list.List  // of *LogEntry, the latest first
	nextID     int64
	maxEntries int
}

// NewLog returns a log of up to maxEntries entries.
func NewLog(maxEntries int) *Log {
	return &Log{maxEntries: maxEntries}
}

// Add records a denial, in the entry of a recent equal one if there is any.
func (l *Log) Add(nowNs int64, d Denial) {
	d.Object, d.Username = cut(d.Object), cut(d.Username)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.findEqualLocked(nowNs, d); e != nil {
		entry := e.Value.(*LogEntry)
		entry.ClientInfo, entry.UpdatedNs = d.ClientInfo, nowNs
		entry.Count++
		l.entries.MoveToFront(e)
		return
	}
	l.entries.PushFront(&LogEntry{Denial: d, ID: l.nextID, Count: 1, CreatedNs: nowNs, UpdatedNs: nowNs})
	l.nextID++
	if l.entries.Len() > l.maxEntries {
		l.entries.Remove(l.entries.Back())
	}
}

func (l *Log) findEqualLocked(nowNs int64, d Denial) *list.Element {
	e := l.entries.Front()
	for range groupScan {
		if e == nil {
			return nil
		}
		entry := e.Value.(*LogEntry)
		d.ClientInfo = entry.ClientInfo // the client may differ
		if ageNs := nowNs - entry.UpdatedNs; entry.Denial == d && ageNs <= groupNs && ageNs >= -groupNs {
			return e
		}
		e = e.Next()
	}
	return nil
}

// Entries returns up to n entries, latest first.
func (l *Log) Entries(n int) []LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var latest []LogEntry
	for e := l.entries.Front(); e != nil && len(latest) < n; e = e.Next() {
		latest = append(latest, *e.Value.(*LogEntry))
	}
	return latest
}

// Reset removes all entries.
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
