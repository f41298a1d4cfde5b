package observe

import (
	"slices"
	"strings"
	"sync"
)

// ErrorReplies counts error replies by code and keeps the last one. It is safe for concurrent use.
type ErrorReplies struct {
	mu     sync.Mutex // guards all below
	byCode map[string]*int64
	total  int64
	ever   uint64 // since the start, despite resets
	last   lastError
}

// ownCodes returns this server's own codes.
func ownCodes() []string {
	return []string{
		"ERR", "BUSYKEY", "Cell", "EXECABORT", "LOADING", "MISCONF", "NOAUTH", "NOPERM", "NOPROTO",
		"NOSCRIPT", "NOTBUSY", "OOM", "STOREDOWN", "UNBLOCKED", "WRONGPASS", "WRONGTYPE",
	}
}

// otherCode stands for codes made up by clients' scripts.
const otherCode = "other"

// Bounds for the other codes, which clients choose.
const (
	maxCodes     = 128
	maxCodeBytes = 64
)

// Count counts a reply and keeps its public part. It allocates for a new code, and to hide a password.
func (e *ErrorReplies) Count(r ErrorReply) {
	code, _, _ := strings.Cut(r.Text[:min(len(r.Text), maxCodeBytes)], " ")
	shown := r.shown()
	var addr, name string
	if r.By != nil {
		addr, name = r.By.Addr(), r.By.Name()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.ever++
	e.last.keep(&shown, addr, name)
	n := e.byCode[code]
	if n == nil {
		if len(e.byCode) >= maxCodes && !slices.Contains(ownCodes(), code) {
			return
		}
		if e.byCode == nil {
			e.byCode = map[string]*int64{}
		}
		n = new(int64)
		e.byCode[strings.Clone(code)] = n
	}
	*n++
}

// Each visits the counts by code.
func (e *ErrorReplies) Each(visit func(code string, n int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for code, n := range e.byCode {
		visit(code, *n)
	}
}

// Total returns the number of error replies since the last reset.
func (e *ErrorReplies) Total() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total
}

// Ever returns the number of error replies since the start.
func (e *ErrorReplies) Ever() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ever
}

func (e *ErrorReplies) Last() LastError {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last.public()
}

// byOwnCode returns the counts of this server's codes and the sum of all others.
func (e *ErrorReplies) byOwnCode() map[string]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := map[string]uint64{otherCode: uint64(e.total)}
	for _, code := range ownCodes() {
		if n := e.byCode[code]; n != nil {
			counts[code] = uint64(*n)
			counts[otherCode] -= counts[code]
		} else {
			counts[code] = 0
		}
	}
	return counts
}

func (e *ErrorReplies) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byCode, e.total = nil, 0
}
