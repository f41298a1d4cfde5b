package charges

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// compare lists items whose state is neither that of the last call that is needed nor that of a later one.
func (c *client) compare(got []int64, need Need) *Found {
	f := &Found{Items: len(got), Refused: maps.Clone(c.refused), Waits: c.waits}
	after := make([][]step, len(got))
	for i, s := range c.steps {
		switch needed := i < c.confirmed || need == Answered && s.answered; {
		case s.void:
		case needed:
			c.items[s.item].base, after[s.item] = s.state, nil
			f.Confirmed++
		default:
			after[s.item] = append(after[s.item], s)
			if s.answered {
				f.Answered++
			} else {
				f.Uncertain++
			}
		}
	}
	for i, it := range c.items {
		c.settle(f, it, after[i], got[i])
	}
	c.steps, c.confirmed, c.waits = c.steps[:0], 0, nil
	clear(c.refused)
	return f
}

// settle finds an item's state among those allowed.
func (c *client) settle(f *Found, it *item, after []step, got int64) {
	states := []state{it.base}
	for _, s := range after {
		states = append(states, s.state)
	}
	has := func(s state) bool { return s.units == got }
	first := slices.IndexFunc(states, has)
	if first < 0 {
		units := make([]int64, len(states))
		for i, s := range states {
			units[i] = s.units
		}
		f.Wrong = append(f.Wrong, fmt.Sprintf("database %d: %s %q has %d units, of those confirmed and then charged %d",
			c.db, it.kind, it.key, got, units))
		it.base, it.now = state{units: got}, state{units: got}
		return
	}
	last := len(states) - 1
	for !has(states[last]) {
		last--
	}
	for _, s := range after[last:] {
		if s.answered {
			f.Forgiven++
		}
	}
	it.now = states[last]
	if first != last {
		it.now.open, it.now.held = "", 0 // it may be one of an earlier state
	}
	it.base = it.now
}

func (k kind) String() string {
	return [...]string{"funnel", "fixed window", "sliding window", "approximate window", "bucket", "quota", "leases", "reservations", "named limit", "override"}[k]
}

// mostDiffer bounds the listed differences.
const mostDiffer = 20

// Differ lists keys whose states two servers have differently, without calls under way.
func (l *Load) Differ(ctx context.Context, a, b string) (lines []string, err error) {
	for _, c := range l.clients {
		var calls [][]any
		for _, it := range c.items {
			if stored := it.kind.stored(it.key); stored != "" {
				calls = append(calls, []any{"DUMP", stored})
			}
			calls = append(calls, []any{"DUMP", it.stray()})
		}
		var states [2][]any
		for i, addr := range []string{a, b} {
			if states[i], err = all(ctx, addr, c.db, calls); err != nil {
				return nil, err
			}
		}
		for i := range calls {
			if states[0][i] != states[1][i] && len(lines) < mostDiffer {
				lines = append(lines, fmt.Sprintf("database %d: %v: %.100q and %.100q", c.db, calls[i], states[0][i], states[1][i]))
			}
		}
	}
	return lines, l.definitionsDiffer(ctx, a, b, &lines)
}

// definitionsDiffer compares the limits and their overrides.
func (l *Load) definitionsDiffer(ctx context.Context, a, b string, lines *[]string) error {
	for _, call := range [][]any{{"CL.LIMIT", "LIST"}, {"CL.LIMIT", "OVERRIDES", limitName}} {
		var texts [2]string
		for i, addr := range []string{a, b} {
			replies, err := all(ctx, addr, 0, [][]any{call})
			if err != nil {
				return err
			}
			texts[i] = fmt.Sprint(replies)
		}
		if texts[0] != texts[1] {
			*lines = append(*lines, fmt.Sprintf("%v: %.300s and %.300s", call, texts[0], texts[1]))
		}
	}
	return nil
}

// stray is a key that only Stray charges: no later call hides that it is still there.
func (it *item) stray() string { return it.key + ":stray:" + it.kind.String() }

// Stray charges all keys on a server that may lead no more, until ctx ends or the connection does. It returns
// how many calls were allowed and refused.
func (l *Load) Stray(ctx context.Context, addr string) (allowed, refused int) {
	for _, c := range l.clients {
		rdb, hangUp, err := dial(ctx, addr, c.db)
		if err != nil {
			return allowed, refused
		}
		stop := context.AfterFunc(ctx, hangUp)
		p := rdb.Pipeline()
		for _, it := range c.items {
			if it.kind != override {
				args, _ := it.kind.change(it.key, 0, 1)
				p.Do(ctx, args...)
			}
			args, _ := funnel.change(it.stray(), 0, 1)
			p.Do(ctx, args...)
		}
		sent, _ := p.Exec(ctx)
		for _, s := range sent {
			switch err := s.Err(); {
			case err == nil:
				allowed++
			case isReply(err):
				refused++
			}
		}
		stop()
		hangUp()
	}
	return allowed, refused
}
