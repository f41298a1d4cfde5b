package killtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// BudgetLimits is the file of the limits on which Budgets hold: one of each algorithm, by which nothing is
// limited and nothing leaks while a test runs.
const BudgetLimits = `limits:
  user: {rules: [{algorithm: fixed_window, max_count: 1000000000, period: 52w}]}
  team: {rules: [{algorithm: funnel, capacity: 1200000, count: 1, period: 1h}]}
  token: {rules: [{algorithm: token_bucket, capacity: 1200000, refill: 1, period: 1h}]}
  model: {rules: [{algorithm: approximate_window, max_count: 1000000000, period: 520w}]}
  org: {rules: [{algorithm: quota, max_count: 1000000000, every: year}]}
`

// Budgets are gateways that hold units over the BudgetLimits at once, settle them later, and keep a ledger. A
// Budgets is for one goroutine.
type Budgets struct {
	config   BudgetsConfig
	gateways []*gateway
	round    int
	spent    map[pair]int64 // by holds that are no longer in the ledger
}

type BudgetsConfig struct {
	Gateways int
	Seed     uint64
	// Confirm returns when all that was answered before is kept. Nil treats each reply as kept.
	Confirm func(ctx context.Context, rdb *redis.Conn) error
}

// pair is a limit and a key of it.
type pair struct{ limit, key string }

func NewBudgets(c BudgetsConfig) *Budgets {
	b := &Budgets{config: c, spent: map[pair]int64{}}
	for i := range c.Gateways {
		b.gateways = append(b.gateways, newGateway(i, c.Seed))
	}
	return b
}

// BudgetRun is gateways at work.
type BudgetRun struct {
	budgets *Budgets
	ending  atomic.Bool
	all     sync.WaitGroup
	stop    context.CancelFunc
	mu      sync.Mutex // guards amiss
	amiss   []string
}

// Begin has all gateways work.
func (b *Budgets) Begin(ctx context.Context, addr string) *BudgetRun {
	ctx, stop := context.WithCancel(ctx)
	r := &BudgetRun{budgets: b, stop: stop}
	for _, g := range b.gateways {
		g.begin(b.round)
		r.all.Go(func() { r.note(g.work(ctx, addr)) })
	}
	b.round++
	if b.config.Confirm != nil {
		r.all.Go(func() { r.note(b.confirm(ctx, addr)) })
	}
	return r
}

func (r *BudgetRun) note(err error) {
	if err == nil || r.ending.Load() && (!isRefusal(err) || strings.Contains(err.Error(), "STOREDOWN ")) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.amiss = append(r.amiss, err.Error())
}

// End kills what keeps the states, and returns the gateways' earlier complaints.
func (r *BudgetRun) End(kill func()) (amiss []string) {
	r.ending.Store(true)
	kill()
	r.stop()
	r.all.Wait()
	return r.amiss
}

// Answered returns the number of answered calls since the last Check.
func (b *Budgets) Answered() (n int64) {
	for _, g := range b.gateways {
		n += g.replied.Load()
	}
	return n
}

// confirm learns which calls are kept.
func (b *Budgets) confirm(ctx context.Context, addr string) error {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return err
	}
	defer hangUp()
	for ctx.Err() == nil {
		replied := make([]int64, len(b.gateways))
		for i, g := range b.gateways {
			replied[i] = g.replied.Load()
		}
		if err := b.config.Confirm(ctx, rdb); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for i, g := range b.gateways {
			g.confirmed.Store(replied[i])
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// BudgetsFound compares the counts of a server with the ledger.
type BudgetsFound struct {
	Open, Settled int // holds, when the server was killed
	Unsure        int // calls without a reply
	Lost          int // calls that were not confirmed, and those without a reply: the most that may be lost
	// Off is by how many units the keys of a limit differ from the ledger, and Bound what the part that may
	// be lost has held or settled there: the sums over all keys.
	Off, Bound map[string]int64
	Wrong      []string
}

// String returns the differences beside their bounds.
func (f *BudgetsFound) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d holds are open, %d were settled; %d calls may be lost, %d of them without a reply", f.Open, f.Settled, f.Lost, f.Unsure)
	for _, of := range budgetShares() {
		fmt.Fprintf(&b, "; %s is off by %d units of at most %d", of.limit, f.Off[of.limit], f.Bound[of.limit])
	}
	return b.String()
}

// Check compares the counts of all keys with the ledger, and goes on from there. If each reply is kept, all
// unanswered calls are repeated first, as gateways do, and the counts must be the ledger's to the unit. Else
// they may differ by what the calls that are not confirmed have held or settled; then all holds are settled.
func (b *Budgets) Check(ctx context.Context, addr string) (found BudgetsFound, err error) {
	rdb, hangUp, err := dial(ctx, addr, 0)
	if err != nil {
		return found, err
	}
	defer hangUp()
	found.Off, found.Bound = map[string]int64{}, map[string]int64{}
	bound, over := map[pair]int64{}, time.Time{}
	for _, g := range b.gateways {
		g.sum(&found, bound, b.config.Confirm == nil)
		if b.config.Confirm == nil {
			if err := g.repeat(ctx, rdb, &found); err != nil {
				return found, err
			}
		}
		if last := g.lastEnd(); last.After(over) {
			over = last
		}
	}
	time.Sleep(time.Until(over)) // of short holds
	want := b.ledger()
	if err := compareBudgets(ctx, rdb, want, bound, &found); err != nil {
		return found, err
	}
	return found, b.goOn(ctx, rdb)
}

// ledger returns the units that each key is to have.
func (b *Budgets) ledger() map[pair]int64 {
	want := map[pair]int64{}
	for p, units := range b.spent {
		want[p] += units
	}
	for _, g := range b.gateways {
		for _, h := range g.holds {
			h.add(want, h.counted())
		}
	}
	return want
}

// Spent returns the units of each limit by the ledger, after a Check.
func (b *Budgets) Spent() map[string]int64 {
	sums := map[string]int64{}
	for p, units := range b.ledger() {
		sums[p.limit] += units
	}
	maps.DeleteFunc(sums, func(_ string, units int64) bool { return units == 0 })
	return sums
}

// compareBudgets compares each key's units with those wanted, within a bound.
func compareBudgets(ctx context.Context, rdb *redis.Conn, want, bound map[pair]int64, found *BudgetsFound) error {
	for p := range want {
		bound[p] += 0 // so bound has all keys
	}
	for p, most := range bound {
		got, err := usedUnits(ctx, rdb, p)
		if err != nil {
			return err
		}
		off := got - want[p]
		found.Off[p.limit] += max(off, -off)
		found.Bound[p.limit] += most
		if max(off, -off) > most {
			found.Wrong = append(found.Wrong, fmt.Sprintf("%s:%s has %d units, the ledger %d; they may differ by %d", p.limit, p.key, got, want[p], most))
		}
	}
	slices.Sort(found.Wrong)
	return nil
}

// usedUnits returns the units counted for a key.
func usedUnits(ctx context.Context, rdb *redis.Conn, p pair) (int64, error) {
	reply, err := rdb.Do(ctx, "CL.CHECK", p.limit, p.key, 0).Int64Slice()
	if err != nil || len(reply) != 5 {
		return 0, fmt.Errorf("CL.CHECK %s %s: %v, %w", p.limit, p.key, reply, err)
	}
	return reply[1] - reply[2], nil
}

// goOn begins anew with what the server has: if a part may be lost, all holds that it still knows are
// settled.
func (b *Budgets) goOn(ctx context.Context, rdb *redis.Conn) error {
	for _, g := range b.gateways {
		if b.config.Confirm != nil {
			if err := g.settleAll(ctx, rdb); err != nil {
				return err
			}
		}
		g.forget(b.spent)
	}
	if b.config.Confirm == nil {
		return nil
	}
	for p := range b.spent {
		units, err := usedUnits(ctx, rdb, p)
		if err != nil {
			return err
		}
		b.spent[p] = units
	}
	return nil
}
