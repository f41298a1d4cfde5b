// Package throttle has the limiter commands that are not decided in batches: those that reserve, wait, fill,
// look or name limits. Its handlers are safe for concurrent use.
package throttle

import (
	"math"
	"strconv"

	"cellserver/internal/decide/observe"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

type handlers struct{ execute.Config }

// Handlers returns the handlers by their commands' full names.
func Handlers(c execute.Config) map[string]execute.Handler {
	k := handlers{c}
	plain, onConnection := execute.Plain, execute.OnConnection
	return map[string]execute.Handler{
		"cl.bthrottle":           plain(k.throttleBlocking),
		"cl.bucket|add":          plain(bucketAdd),
		"cl.bucket|reset":        plain(bucketReset),
		"cl.bucket|len":          plain(bucketLen),
		"cl.peek":                plain(k.peek),
		"cl.reserve":             plain(k.reserve),
		"cl.commit":              plain(k.commit),
		"cl.mthrottle":           plain(k.throttleTogether),
		"cl.concurrency|acquire": plain(acquire),
		"cl.concurrency|release": plain(release),
		"cl.concurrency|renew":   plain(renew),
		"cl.concurrency|len":     plain(holders),
		"cl.mcheck":              plain(k.checkTogether),
		"cl.mreserve":            plain(holdTogether),
		"cl.mcommit":             plain(settleTogether),
		"cl.mextend":             plain(extendTogether),
		"cl.limit|explain":       plain(k.limitExplain),
		"cl.limit|override":      onConnection(k.limitOverride),
		"cl.limit|overrides":     onConnection(k.limitOverrides),
		"cl.limit|del":           onConnection(k.limitDel),
		"cl.limit|get":           plain(k.limitGet),
		"cl.limit|list":          plain(k.limitList),
		"cl.limit|reload":        onConnection(k.limitReload),
		"cl.limit|set":           onConnection(k.limitSet),
	}
}

// readFunnel fills n from args; its first numbers are max_burst, count and period.
func (k handlers) readFunnel(n []int64, args [][]byte) (funnel.Limit, error) {
	if err := argument.Numbers(n, args); err != nil {
		return funnel.Limit{}, err
	}
	return funnel.NewLimit(k.Reading, n[0], n[1], n[2])
}

// peek is CL.PEEK key max_burst count period [quantity] [ATMOST].
func (k handlers) peek(c execute.Call, args [][]byte) error {
	var q store.Request
	if err := argument.Peek(&q, c.DB(), args, k.Reading); err != nil {
		return err
	}
	tatNs, _, err := c.TAT(args[1])
	if err != nil {
		return err
	}
	if _, err := q.Do(&limiter.State{ExpiresNs: tatNs}, c.Now()); err != nil {
		return reply.StoreFailed(err)
	}
	execute.Decision(c.Reply(), &q)
	return nil
}

// throttleBlocking is CL.BTHROTTLE key max_burst count period quantity timeout.
func (k handlers) throttleBlocking(c execute.Call, args [][]byte) error {
	var n [4]int64 // max_burst, count, period, quantity
	limit, err := k.readFunnel(n[:], args[2:])
	if err != nil {
		return err
	}
	timeoutNs, err := argument.Timeout(args[6])
	if err != nil {
		return err
	}
	if timeoutNs == 0 {
		timeoutNs = math.MaxInt64
	}
	return c.AwaitTurn(args[1], &limiter.Operation{Verb: limiter.Wait, Funnel: limit, Quantity: n[3], TTLNs: timeoutNs})
}

// limitArgs counts the arguments of one limit: key, max_burst, count, period, quantity.
const limitArgs = 5

// throttleTogether is CL.MTHROTTLE n key max_burst count period quantity [key max_burst count period quantity
// ...].
func (k handlers) throttleTogether(c execute.Call, args [][]byte) error {
	n, err := argument.Int(args[1]) // in the grammar of its row, by which its keys were checked
	switch {
	case err != nil:
		return err
	case n < 1 || n > observe.MaxBatch:
		return reply.Error("ERR n, the number of limits, must be 1 to " + strconv.Itoa(observe.MaxBatch) + ", got " + strconv.FormatInt(n, 10))
	case len(args) != 2+int(n)*limitArgs:
		return reply.ErrArity
	}
	batch := make([]store.Request, n)
	for i := range batch {
		if err := k.readLimit(&batch[i], c, args[2+i*limitArgs:]); err != nil {
			return err
		}
	}
	return replyTogether(c, batch, true)
}

// replyTogether decides a batch in one step, all or none of it or each request by itself, and replies.
func replyTogether(c execute.Call, batch []store.Request, all bool) error {
	limited, err := c.Together(batch, all)
	if err != nil {
		return err
	}
	w := c.Reply()
	w.Array(1 + len(batch))
	w.Int(execute.LimitedInt(limited))
	for i := range batch {
		execute.Decision(w, &batch[i])
	}
	return nil
}

func (k handlers) readLimit(q *store.Request, c execute.Call, args [][]byte) error {
	var n [limitArgs - 1]int64 // max_burst, count, period, quantity
	limit, err := k.readFunnel(n[:], args[1:])
	if err != nil {
		return err
	}
	if n[3] < 0 {
		return reply.Error("ERR quantity must be at least 0; CL.REFUND gives units back")
	}
	*q = store.Request{Key: c.Key(args[0]), Rule: limiter.OfFunnel(limit), Quantity: n[3]}
	return nil
}
