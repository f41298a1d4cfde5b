package keys

import (
	"bytes"
	"context"
	"math"
	"strconv"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// scanQuery is SCAN cursor [MATCH pattern] [COUNT count] [TYPE type].
type scanQuery struct {
	cursor  uint64
	count   int
	pattern []byte                  // nil for all
	kind    func(limiter.Kind) bool // reports whether the type is wanted; nil for all
}

const (
	defaultScanCount = 10
	maxScanCount     = 1 << 20 // bounds a call's work; COUNT is a hint
)

func (k handlers) scanQuery(args [][]byte) (*scanQuery, error) {
	cursor, err := parseCursor(string(args[1]))
	if err != nil {
		return nil, err
	}
	q := &scanQuery{cursor: cursor, count: defaultScanCount}
	for args = args[2:]; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return nil, reply.ErrSyntax
		}
		switch value := args[1]; glob.Fold(args[0]) {
		case "match":
			if err := k.checkPattern(value); err != nil {
				return nil, err
			}
			q.pattern = bytes.Clone(value)
		case "count":
			n, ok := resp.ParseInt(value)
			switch {
			case !ok:
				return nil, reply.ErrNotInteger
			case n < 1:
				return nil, reply.ErrSyntax
			}
			q.count = int(min(n, maxScanCount))
		case "type":
			name := glob.Fold(value)
			q.kind = func(k limiter.Kind) bool { return k.Type() == name }
		default:
			return nil, reply.ErrSyntax
		}
	}
	return q, nil
}

// parseCursor accepts what C's strtoul does: an empty text and a sign, too.
func parseCursor(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	if text[0] == '-' || text[0] == '+' {
		text = text[1:]
	}
	cursor, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, reply.Error("ERR invalid cursor")
	}
	return cursor, nil
}

// checkPattern bounds what a match costs.
func (k handlers) checkPattern(pattern []byte) error {
	if len(pattern) > k.MaxKeyBytes {
		return reply.TooLong("pattern is", k.MaxKeyBytes, "--max-key-bytes")
	}
	return nil
}

func (k handlers) scan(c execute.Call, all store.Walker, args [][]byte) error {
	q, err := k.scanQuery(args)
	if err != nil {
		return err
	}
	w := k.newWalk(c, all, q)
	done := func(c execute.Call) error {
		if err := transact.WalkFailed(all); err != nil {
			return err
		}
		c.Reply().Array(2)
		c.Reply().BulkString(strconv.FormatUint(w.cursor, 10))
		w.reply(c)
		return nil
	}
	if !c.InBackground() && w.isShort(k.MaxKeyBytes) && w.first(c.Now()) {
		return done(c)
	}
	return c.Background(w.many, done)
}

// keys is KEYS pattern. It walks as SCAN does, so it may or may not see concurrent writes.
func (k handlers) keys(c execute.Call, all store.Walker, args [][]byte) error {
	if err := k.checkPattern(args[1]); err != nil {
		return err
	}
	w := k.newWalk(c, all, &scanQuery{pattern: bytes.Clone(args[1]), count: math.MaxInt})
	return c.Background(w.many, func(c execute.Call) error {
		if err := transact.WalkFailed(all); err != nil {
			return err
		}
		if w.full() {
			return reply.Error("ERR the reply would be longer than " + strconv.Itoa(w.maxBytes) +
				" bytes, the limit of --max-output-bytes; use SCAN")
		}
		w.reply(c)
		return nil
	})
}

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
