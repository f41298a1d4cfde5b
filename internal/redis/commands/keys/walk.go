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

// walk collects keys for a reply. Clients choose its cost, so it counts glob's steps, and continues in the
// background once it has spent an event loop's share.
type walk struct {
	*scanQuery
	all       store.Walker
	db        uint16
	maxBytes  int
	holdsKeys bool
	glob      *glob.Pattern // nil for all keys
	budget    glob.Budget
	stopped   bool // the client has gone
	w         resp.Writer
	n         int
}

func (k handlers) newWalk(c execute.Call, all store.Walker, q *scanQuery) *walk {
	return &walk{scanQuery: q, all: all, db: c.DB(), maxBytes: k.MaxReplyBytes, holdsKeys: c.HoldsKeys()}
}

// Steps of about a nanosecond.
const (
	loopSteps = 200_000 // of one call on an event loop
	turnSteps = 100_000 // in the background between yields and checks of the client
	keySteps  = 30      // to find a key, without copying its name
)

const firstKeys = 16 // of a walk's first chunk, before their lengths are known

// isShort reports whether the walk may begin on an event loop.
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

// first collects keys on an event loop, in chunks sized by the cost so far, and reports whether the walk is
// done.
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

// many collects about count keys in the background, or fewer if the reply is full.
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

// some visits about count keys from the cursor, advances it, and returns their number.
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

func (w *walk) full() bool { return len(w.w.Buf) > w.maxBytes }

// reply appends an array of the keys to a reply.
func (w *walk) reply(c execute.Call) {
	c.Reply().Array(w.n)
	c.TakeOver(w.w.Buf)
}
