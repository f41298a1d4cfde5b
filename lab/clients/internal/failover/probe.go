package failover

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// probeEvery is the time between two changes of a server's key by its probe.
const probeEvery = 5 * time.Millisecond

// probe changes a key of a server all the time, and notes when it succeeds.
type probe struct {
	mu        sync.Mutex // guards successes
	successes []time.Time
}

// run returns when ctx is done.
func (p *probe) run(ctx context.Context, kind Kind, client *redis.Client) {
	ticks := time.NewTicker(probeEvery)
	defer ticks.Stop()
	for ctx.Err() == nil {
		if kind.charge(ctx, client, "failover:probe") == nil {
			p.mu.Lock()
			p.successes = append(p.successes, time.Now())
			p.mu.Unlock()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// take returns the successes so far, of which it keeps the last.
func (p *probe) take() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.successes
	if n := len(taken); n > 0 {
		p.successes = slices.Clone(taken[n-1:])
	}
	return taken
}

// seen reports whether it succeeded after a time.
func (p *probe) seen(after time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.successes)
	return n > 0 && p.successes[n-1].After(after)
}

// between returns the time from the old leader's last success to the new one's first after the beginning of a
// failover, and for how long both accepted changes after that.
func between(began time.Time, oldLeader, newLeader []time.Time) (without, both time.Duration) {
	i := slices.IndexFunc(newLeader, func(t time.Time) bool { return t.After(began) })
	if i < 0 || len(oldLeader) == 0 {
		return 0, 0
	}
	first := newLeader[i]
	for _, t := range oldLeader {
		if t.Before(first) {
			without = first.Sub(t)
		} else {
			both = t.Sub(first)
		}
	}
	return without, both
}
