package cellserver

import (
	"context"
	"errors"
	"time"
)

// Reservation holds units until Commit, or until its time is over, which returns them.
type Reservation struct {
	Result

	limiter *Limiter
	key, id string // id is "" for what no server has reserved
	funnel  Funnel
}

var errPeriod = errors.New("cellserver: a reservation's Period is whole seconds, its ttl at least 1 ms")

// Reserve reserves n units of a key's funnel for at most ttl, for a cost that is known only afterwards,
// such as a language model's tokens: reserve the most that it may be, and commit what it was. The key is
// not under the name of a limit. Errors are those of Allow; a Local reservation is decided by f.
func (l *Limiter) Reserve(
	ctx context.Context, key string, f Funnel, n int64, ttl time.Duration,
) (*Reservation, error) {
	switch {
	case n < 0:
		return nil, errQuantity
	case f.check() != nil:
		return nil, errFunnel
	case f.Period%time.Second != 0 || ttl < time.Millisecond:
		return nil, errPeriod
	}
	key = bound(key)
	to := &Reservation{limiter: l, key: key, funnel: f}
	sec := int64(f.Period / time.Second)
	v, err := l.ask(ctx, "CL.RESERVE", key, f.MaxBurst, f.Count, sec, n, ttl.Milliseconds())
	if err == nil {
		to.Result, err = read(key, v, integers+1)
	}
	if err != nil {
		to.Result, err = l.decide(ctx, key, key, &f, n, err, l.local.take)
		return to, err
	}
	if to.Allowed {
		to.id, _ = v.([]any)[integers].(string)
	}
	return to, nil
}

// Commit reports how many units were used, once. Fewer than reserved return the rest, and more are
// debited beyond the limit, also when the reservation's time is over. It does nothing if no server has
// reserved the units.
func (r *Reservation) Commit(ctx context.Context, used int64) error {
	if r.id == "" {
		return nil
	}
	if used < 0 {
		return errQuantity
	}
	f, id := r.funnel, r.id
	r.id = "" // a second commit could debit twice
	sec := int64(f.Period / time.Second)
	_, err := r.limiter.ask(ctx, "CL.COMMIT", r.key, id, used, "LATE", f.MaxBurst, f.Count, sec)
	return err
}
