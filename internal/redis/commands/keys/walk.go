package keys

import (
	"context"
	"math"

	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// walk collects keys for a reply. What that costs is sized by clients, so it is counted in the steps of glob, and a walk
// that has spent an event loop's share of them goes on in the background.
type walk struct {
	*scanQuery
	all       store.Walker
	db        uint16
	maxBytes  int
	holdsKeys bool
	glob      *glob.Pattern // nil for all keys
	budget    glob.Budget
	stopped   bool // nobody waits for it any more
	w         resp.Writer
	n         int
}

func (k handlers) newWalk(c execute.Call, all store.Walker, q *scanQuery) *walk {
	w := &walk{scanQuery: q, all: all, db: c.DB(), maxBytes: k.MaxReplyBytes, holdsKeys: c.HoldsKeys()}
	w.w.Buf = make([]byte, headBytes)
	return w
}

// Steps, of about a nanosecond each.
const (
	loopSteps = 200_000 // that an event loop takes for one call
	turnSteps = 100_000 // in the background, between two looks at whether others want the processor, or the client has gone
	keySteps  = 30      // to find a key; copying its name comes on top
)

// firstKeys is how many keys a walk begins with, before it knows how long they are.
const firstKeys = 16

// isShort reports whether an event loop may begin with the walk.
func (w *walk) isShort(maxKeyBytes int) bool {
	if w.count > backgroundKeys || glob.CompileCost(w.pattern) > loopSteps {
		return false
	}
	w.compile()
	return w.glob == nil || w.glob.Cost.Of(firstKeys, firstKeys*maxKeyBytes) <= loopSteps
}

func (w *walk) compile() {
	if w.pattern != nil && w.glob == nil {
		w.glob = glob.Compile(w.pattern)
	}
}

// first collects keys on an event loop, and reports whether that is all that was asked for. It takes more of them at a time
// as it sees what they cost.
func (w *walk) first(nowNs int64) (done bool) {
	spent, visited := false, 0
	w.budget = glob.Budget{Left: loopSteps, Refill: func() int {
		spent = true
		return math.MaxInt
	}}
	for n := firstKeys; !spent; {
		n = min(n, w.count)
		found := w.some(nowNs, n)
		w.count -= n
		if visited += found; w.count == 0 || w.cursor == 0 || found < n || w.full() {
			return true
		}
		each := (loopSteps-w.budget.Left)/visited + 1
		n = max(1, min(2*n, w.budget.Left/each))
	}
	return false
}

// many collects about count keys in the background, and leaves the rest to the next call when their names are too long
// for a reply.
func (w *walk) many(ctx context.Context, nowNs int64) {
	w.compile()
	w.budget = glob.Budget{Refill: func() int {
		if ctx.Err() != nil {
			w.stopped = true
			return -1
		}
		if !w.holdsKeys {
			background.Yield()
		}
		return turnSteps
	}}
	for left := w.count; left > 0 && !w.full() && !w.stopped && ctx.Err() == nil; left -= backgroundKeys {
		if w.some(nowNs, min(left, backgroundKeys)); w.cursor == 0 {
			return
		}
	}
}

// some looks at about count keys from the cursor on, moves it behind them, and returns how many there were.
func (w *walk) some(nowNs int64, count int) (visited int) {
	w.cursor = w.all.Scan(nowNs, w.db, w.cursor, count, func(key store.Key, e store.Entry) {
		visited++
		if w.stopped || !w.budget.Spend(keySteps+len(key.Name)/4) || w.kind != nil && !w.kind(e.Kind) {
			return
		}
		if w.glob != nil {
			if matched, ok := w.glob.Match(key.Name, &w.budget); !matched || !ok {
				return
			}
		}
		w.w.Bulk(key.Name)
		w.n++
	})
	return visited
}

// headBytes is left in front of the keys for what a reply begins with.
const headBytes = 64

func (w *walk) full() bool { return len(w.w.Buf)-headBytes > w.maxBytes }

// copiedBytes is how much an event loop copies of a reply that it could have as it is.
const copiedBytes = 64 << 10

// reply appends an array of the keys to a reply.
func (w *walk) reply(to *resp.Writer) {
	to.Array(w.n)
	if head := len(to.Buf); head <= headBytes && len(w.w.Buf) > copiedBytes {
		whole := w.w.Buf[headBytes-head:]
		copy(whole, to.Buf)
		to.Buf = whole
		return
	}
	to.Buf = append(to.Buf, w.w.Buf[headBytes:]...)
}
