package observe

import (
	"slices"
	"strings"
	"sync"
)

// ErrorReplies counts error replies by their codes. It is safe for concurrent use.
type ErrorReplies struct {
	mu     sync.Mutex // guards all below
	byCode map[string]int64
	total  int64
}

// ownCodes are those of this server's own replies.
func ownCodes() []string {
	return []string{"ERR", "Cell", "EXECABORT", "NOAUTH", "NOPERM", "NOPROTO", "NOSCRIPT", "NOTBUSY", "OOM", "WRONGPASS"}
}

// otherCode is for the codes that scripts make up, which clients choose.
const otherCode = "other"

// The codes that are counted in addition to this server's own are bounded, for clients choose them.
const (
	maxCodes     = 128
	maxCodeBytes = 64
)

// Count counts a reply by its text.
func (e *ErrorReplies) Count(text string) {
	code, _, _ := strings.Cut(text[:min(len(text), maxCodeBytes)], " ")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	if _, known := e.byCode[code]; known || len(e.byCode) < maxCodes || slices.Contains(ownCodes(), code) {
		if e.byCode == nil {
			e.byCode = map[string]int64{}
		}
		e.byCode[strings.Clone(code)]++
	}
}

// Each visits the counts by code.
func (e *ErrorReplies) Each(visit func(code string, n int64)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for code, n := range e.byCode {
		visit(code, n)
	}
}

// Total counts all error replies.
func (e *ErrorReplies) Total() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.total
}

// byOwnCode returns the counts of this server's own codes, and of all others together.
func (e *ErrorReplies) byOwnCode() map[string]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := map[string]uint64{otherCode: uint64(e.total)}
	for _, code := range ownCodes() {
		counts[code] = uint64(e.byCode[code])
		counts[otherCode] -= counts[code]
	}
	return counts
}

func (e *ErrorReplies) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byCode, e.total = nil, 0
}
