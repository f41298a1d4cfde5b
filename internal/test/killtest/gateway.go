package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// share is what a call holds on a limit: its units, each times a factor.
type share struct {
	limit string
	each  int64 // the factor
}

// budgetPairs is the number of pairs of each call.
const budgetPairs = 5

// budgetShares are the pairs of each call.
func budgetShares() [budgetPairs]share {
	return [...]share{{"user", 1}, {"team", 1}, {"token", 1}, {"model", 3}, {"org", 10}}
}

// holdState is what a gateway knows of a hold:
//
//	from      to        when
//	asked     held      MRESERVE is answered
//	held      settling  MCOMMIT is sent
//	settling  settled   it is answered
type holdState uint8

const (
	asked holdState = iota
	held
	settling
	settled
)

// budgetHold is a hold in a gateway's ledger.
type budgetHold struct {
	id     string
	keys   [budgetPairs]string
	units  int64 // of the call
	actual int64
	short  bool // it is over soon, and no MEXTEND is sent for it
	charge bool
	state  holdState
	ends   time.Time // of a short one: not later
}

const (
	shortMs = 20
	longMs  = 3_600_000
)

// counted returns the call's units that count, once a short hold is over.
func (h *budgetHold) counted() int64 {
	switch {
	case h.state == asked:
		return 0
	case h.state == settled:
		return h.actual
	case h.short && !h.charge:
		return 0
	}
	return h.units
}

func (h *budgetHold) add(to map[pair]int64, units int64) {
	for i, of := range budgetShares() {
		to[pair{of.limit, h.keys[i]}] += units * of.each
	}
}

func (h *budgetHold) pairs(args []any, units int64, withUnits bool) []any {
	for i, of := range budgetShares() {
		if args = append(args, of.limit, h.keys[i]); withUnits {
			args = append(args, units*of.each)
		}
	}
	return args
}

func (h *budgetHold) reserve() []any {
	ttl := longMs
	if h.short {
		ttl = shortMs
	}
	args := append(h.pairs([]any{"CL.MRESERVE", budgetPairs}, h.units, true), "TTL", ttl, "ID", h.id)
	if h.charge {
		args = append(args, "CHARGE")
	}
	return args
}

func (h *budgetHold) commit() []any {
	return h.pairs([]any{"CL.MCOMMIT", h.id, budgetPairs}, h.actual, true)
}

func (h *budgetHold) extend() []any {
	return h.pairs([]any{"CL.MEXTEND", h.id, longMs, budgetPairs}, 0, false)
}

// budgetCall is the call that a gateway has sent about a hold.
type budgetCall struct {
	of    *budgetHold
	units int64 // that it holds or settles
	took  func()
	reply *redis.Cmd
	wants []int64 // of MCOMMIT and MEXTEND
}

// gateway calls for one user, and for teams that it shares with others.
type gateway struct {
	number int
	random *rand.Rand
	round  int
	made   int
	holds  []*budgetHold // that are not forgotten
	calls  []budgetCall  // since the last check, in sending order

	replied, confirmed atomic.Int64 // numbers of calls
}

func newGateway(number int, seed uint64) *gateway {
	return &gateway{number: number, random: rand.New(rand.NewPCG(seed, uint64(number)))}
}

func (g *gateway) begin(round int) {
	g.round, g.calls = round, nil
	g.replied.Store(0)
	g.confirmed.Store(0)
}

// work calls until the connection ends.
func (g *gateway) work(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return fmt.Errorf("gateway %d: %w", g.number, err)
	}
	defer hangUp()
	for ctx.Err() == nil {
		if err := g.once(context.WithoutCancel(ctx), rdb); err != nil {
			return fmt.Errorf("gateway %d: %w", g.number, err)
		}
	}
	return nil
}

const (
	// mostHeld bounds the holds of a gateway: a key has those of all, and its overdue ones.
	mostHeld = 40
	// mostAtOnce bounds a pipeline.
	mostAtOnce = 6
)

// once sends some calls about different holds.
func (g *gateway) once(ctx context.Context, rdb *redis.Conn) error {
	var open []*budgetHold
	for _, h := range g.holds {
		if h.state == held {
			open = append(open, h)
		}
	}
	g.random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	p, first := rdb.Pipeline(), len(g.calls)
	for range 1 + g.random.IntN(mostAtOnce) {
		switch {
		case len(open) == 0 || len(open) < mostHeld && g.random.IntN(2) == 0:
			g.reserve(ctx, p)
			continue
		case !open[0].short && g.random.IntN(8) == 0:
			h := open[0]
			g.calls = append(g.calls, budgetCall{of: h, reply: p.Do(ctx, h.extend()...), wants: []int64{1}, took: func() {}})
		default:
			g.commit(ctx, p, open[0])
		}
		open = open[1:]
	}
	_, _ = p.Exec(ctx) // each reply has its error
	return g.read(g.calls[first:])
}

func (g *gateway) reserve(ctx context.Context, p redis.Pipeliner) {
	g.made++
	h := &budgetHold{
		id: fmt.Sprintf("g%d-%d", g.number, g.made), units: 1 + g.random.Int64N(5),
		short: g.random.IntN(20) == 0, charge: g.random.IntN(3) == 0,
	}
	team := fmt.Sprintf("r%d-%d", g.round, g.number%2)
	h.keys = [...]string{fmt.Sprintf("u%d", g.number), team, team, "large", "acme"}
	g.holds = append(g.holds, h)
	g.calls = append(g.calls, budgetCall{of: h, units: h.units, reply: p.Do(ctx, h.reserve()...), took: func() {
		h.state, h.ends = held, time.Now().Add(shortMs*time.Millisecond)
	}})
}

func (g *gateway) commit(ctx context.Context, p redis.Pipeliner, h *budgetHold) {
	h.state, h.actual = settling, g.random.Int64N(2*h.units)
	wants := []int64{1}
	if h.short {
		wants = append(wants, 2)
	}
	g.calls = append(g.calls, budgetCall{of: h, units: max(h.units, h.actual), reply: p.Do(ctx, h.commit()...), wants: wants, took: func() { h.state = settled }})
}

// read takes over the replies to some calls. The first error leaves the rest unanswered.
func (g *gateway) read(calls []budgetCall) error {
	for i := range calls {
		c := &calls[i]
		if err := c.check(); err != nil {
			return err
		}
		c.took()
		g.replied.Add(1)
	}
	return nil
}

// check returns an error for another reply than the expected one.
func (c *budgetCall) check() error {
	switch reply, err := c.reply.Result(); {
	case err != nil:
		return fmt.Errorf("%v: %w", c.reply.Args(), err)
	case c.wants == nil:
		if all, _ := reply.([]any); len(all) != budgetPairs+2 || all[0] != int64(0) || all[len(all)-1] != c.of.id {
			return fmt.Errorf("%w: %v: %v", errUnexpected, c.reply.Args(), reply)
		}
	default:
		for _, want := range c.wants {
			if reply == want {
				return nil
			}
		}
		return fmt.Errorf("%w: %v: %v", errUnexpected, c.reply.Args(), reply)
	}
	return nil
}

// sum counts holds and calls, and adds to bound what the calls that may be lost have held or settled.
func (g *gateway) sum(found *BudgetsFound, bound map[pair]int64, eachReply bool) {
	for _, h := range g.holds {
		switch h.state {
		case settled:
			found.Settled++
		case held, settling:
			found.Open++
		case asked:
		}
	}
	replied, kept := g.replied.Load(), g.confirmed.Load()
	found.Unsure += len(g.calls) - int(replied)
	if eachReply {
		found.Lost += len(g.calls) - int(replied) // their holds are known by repeating them
		return
	}
	for _, c := range g.calls[kept:] {
		c.of.add(bound, c.units)
	}
	found.Lost += len(g.calls) - int(kept)
}

// lastEnd returns when all short holds are over.
func (g *gateway) lastEnd() (last time.Time) {
	for _, h := range g.holds {
		if h.short && h.state != settled && h.ends.After(last) {
			last = h.ends
		}
	}
	return last
}

// repeat repeats the calls without an answer, and compares what the server knows of the other holds.
func (g *gateway) repeat(ctx context.Context, rdb *redis.Conn, found *BudgetsFound) error {
	wrong := func(h *budgetHold, what string, reply any, err error) {
		found.Wrong = append(found.Wrong, fmt.Sprintf("hold %s, %+v: %s replies %v, %v", h.id, *h, what, reply, err))
	}
	for _, h := range g.holds {
		switch h.state {
		case asked:
			c := budgetCall{of: h, reply: rdb.Do(ctx, h.reserve()...)}
			err := c.check()
			isOver := h.short && err != nil && strings.Contains(err.Error(), "ERR the id ")
			if err != nil && !isOver {
				return err
			}
			h.state, h.ends = held, time.Now().Add(shortMs*time.Millisecond)
			if isOver { // it was on the disk, and its time has passed since
				h.actual, h.state = h.units, settled
				if n, err := rdb.Do(ctx, h.commit()...).Int64(); err != nil || n != 2 {
					wrong(h, "MCOMMIT", n, err)
				}
			}
		case settling: // 0 if it is settled
			if n, err := rdb.Do(ctx, h.commit()...).Int64(); err != nil || n < 0 || n > 2 || n == 2 && !h.short {
				wrong(h, "MCOMMIT", n, err)
			}
			h.state = settled
		case held:
			if h.short {
				continue
			}
			if n, err := rdb.Do(ctx, h.extend()...).Int64(); err != nil || n != 1 {
				wrong(h, "MEXTEND", n, err)
			}
		case settled:
			if n, err := rdb.Do(ctx, h.commit()...).Int64(); err != nil || n != 0 {
				wrong(h, "MCOMMIT again", n, err)
			}
		}
	}
	return nil
}

// settleAll settles all holds that a server still knows.
func (g *gateway) settleAll(ctx context.Context, rdb *redis.Conn) error {
	for _, h := range g.holds {
		if err := rdb.Do(ctx, h.commit()...).Err(); err != nil {
			return err
		}
		h.state = settled
	}
	return nil
}

// forget drops settled holds from the ledger.
func (g *gateway) forget(spent map[pair]int64) {
	rest := g.holds[:0]
	for _, h := range g.holds {
		if h.state == settled {
			h.add(spent, h.actual)
		} else {
			rest = append(rest, h)
		}
	}
	g.holds, g.calls = rest, nil
	g.replied.Store(0)
	g.confirmed.Store(0)
}
