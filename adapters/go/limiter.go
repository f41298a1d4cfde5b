package cellserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client sends a command. Clients of go-redis are Clients.
type Client interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// OnError selects what a Limiter does when no server decides: none answers in time, or it is full, loading
// or the like. Mistakes are returned all the same, as ErrMisconfigured.
type OnError uint8

const (
	Open   OnError = iota // allows
	Closed                // returns the error
	Local                 // decides in this process, by Limiter.Fallback
)

// Limiter asks a server. It must not be copied after its first call.
type Limiter struct {
	Client     Client                   // such as redis.NewClient(Options(addr))
	OnError    OnError                  // when no server decides
	Fallback   map[string]Funnel        // for Local: limits by name; those that are missing are Closed
	LocalUnits map[string]int64         // for holds by Local: most units of a key by the limit's name, else Closed
	Timeout    time.Duration            // of a call to the server, including connecting; 0 means DefaultTimeout
	Report     func(error)              // is told each error; nil logs a line a second by log/slog
	Note       func(id string, s Stage) // is told of holds, such as for a journal; nil is nobody

	local   local
	counted counting
	outbox  outbox
	report  report
}

// Errors of a call that no waiting would allow.
var (
	ErrNever    = errors.New("cellserver: the limit never allows this many")
	errQuantity = errors.New("cellserver: the quantity is negative")
	errAtMost   = errors.New("cellserver: AllowAtMost needs a quantity of at least 1")
)

// Allow requests n units of a key under the name of a limit: all, or none. Result.Allowed reports the
// decision, and Result.Err why it is not the server's. An error is returned if ctx has ended, if no server
// decides and OnError does not either, and for a mistake (ErrMisconfigured).
func (l *Limiter) Allow(ctx context.Context, limit, key string, n int64) (Result, error) {
	if n < 0 {
		return Result{}, errQuantity
	}
	key = bound(key)
	v, err := l.ask(ctx, "CL.CHECK", limit, key, n)
	var r Result
	if err == nil {
		r, err = read(limit, v, integers)
	}
	if err == nil {
		return r, nil
	}
	return l.decide(ctx, limit, limit+":"+key, l.fallback(limit), n, err, l.local.take)
}

// AllowAtMost is Allow for as many of n units as are left, at least one: Result.Taken is how many, 0 if
// the call was limited. A limit in shadow, and Open without a server, give all.
func (l *Limiter) AllowAtMost(ctx context.Context, limit, key string, n int64) (Result, error) {
	if n < 1 {
		return Result{}, errAtMost
	}
	key = bound(key)
	v, err := l.ask(ctx, "CL.CHECK", limit, key, n, "ATMOST")
	var r Result
	if err == nil {
		r, err = read(limit, v, integers+1)
	}
	if err == nil {
		r.Taken, _ = v.([]any)[integers].(int64)
		return r, nil
	}
	r, err = l.decide(ctx, limit, limit+":"+key, l.fallback(limit), n, err, l.local.takeAtMost)
	if err == nil && l.OnError == Open {
		r.Taken = n
	}
	return r, err
}

// fallback returns the funnel that decides for a limit without a server, or nil.
func (l *Limiter) fallback(limit string) *Funnel {
	if f, ok := l.Fallback[limit]; ok {
		return &f
	}
	return nil
}

// ask sends a command.
func (l *Limiter) ask(ctx context.Context, args ...any) (reply any, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(l.Timeout, DefaultTimeout))
	defer cancel()
	if reply, err = l.Client.Do(ctx, args...).Result(); err != nil {
		return nil, fmt.Errorf("cellserver: %s: %w", args[0], err)
	}
	return reply, nil
}

// decide decides by OnError, as the server has not, for a reason, or returns a mistake. Local takes the
// units from the funnel; without one it is Closed.
func (l *Limiter) decide(
	ctx context.Context, name, key string, f *Funnel, n int64, reason error,
	take func(now time.Time, key string, f Funnel, n int64) Result,
) (Result, error) {
	reason, err := l.undecided(ctx, reason)
	if err != nil {
		return Result{}, err
	}
	switch l.OnError {
	case Open:
		return Result{Name: name, Allowed: true, RetryAfter: -1, Err: reason}, nil
	case Local:
		if f == nil {
			return Result{}, fmt.Errorf("%w, and Fallback has no limit %q", reason, name)
		}
		if err := f.check(); err != nil {
			return Result{}, fmt.Errorf("%w, and %w", reason, err)
		}
		r := take(time.Now(), key, *f, n)
		r.Name, r.Err = name, reason
		return r, nil
	default:
		return Result{}, reason
	}
}

// undecided reports why no server decides. It returns an error if nobody else may.
func (l *Limiter) undecided(ctx context.Context, reason error) (why, err error) {
	// A client that hangs up early must not get through, and nobody waits for the decision.
	if err := ctx.Err(); err != nil {
		return reason, err
	}
	if !isUnavailable(reason) {
		reason = fmt.Errorf("%w: %w", ErrMisconfigured, reason)
		err = reason
	}
	l.report.add(undecidedText, reason, l.Report)
	return reason, err
}

const undecidedText = "cellserver: no server has decided"

// Wait requests n units as Allow does, and if they are limited again until they are allowed. It returns
// an error if Allow does, if ctx ends or its deadline is too early, and ErrNever if no waiting would
// help. Several that wait are served in no order; the command CL.BTHROTTLE has an order.
func (l *Limiter) Wait(ctx context.Context, limit, key string, n int64) error {
	poll := firstPoll
	for {
		r, err := l.Allow(ctx, limit, key, n)
		switch {
		case err != nil || r.Allowed:
			return err
		case r.RetryAfter < 0:
			return fmt.Errorf("%w: %d of %s", ErrNever, n, limit)
		}
		// The server's seconds are rounded up, so the last one is polled.
		least, pause := r.RetryAfter, r.RetryAfter
		if r.Err == nil {
			least = max(0, r.RetryAfter-time.Second)
			pause = least + poll + rand.N(poll)
			poll = min(2*poll, lastPoll)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < least {
			err = context.DeadlineExceeded
			return fmt.Errorf("cellserver: wait for %s: try again in %s: %w", limit, r.RetryAfter, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = 160 * time.Millisecond
)

// maxKeyBytes of a key are sent. The server refuses long keys, which are often a client's choice and no
// mistake of configuration.
const maxKeyBytes = 256

func bound(key string) string {
	if len(key) <= maxKeyBytes {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}
