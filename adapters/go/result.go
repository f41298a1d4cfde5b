package cellserver

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"
)

// Result is a decision about a call. It has the tightest rule's numbers, if the limit has several.
type Result struct {
	Name             string // of the limit; a reservation's is its key
	Allowed          bool
	Limit, Remaining int64         // units: in all, and available now
	RetryAfter       time.Duration // until the same call would be allowed; below 0 if it was, or never will be
	ResetAfter       time.Duration // until all units are available
	Err              error         // why no server decided; nil if one did
	Taken            int64         // units, of AllowAtMost
}

const integers = 5 // of a decision

var errReply = errors.New("cellserver: the reply is not a decision")

// read reads a decision, whose times are in seconds.
func read(name string, reply any, elements int) (Result, error) {
	var n [integers]int64
	v, _ := reply.([]any)
	ok := len(v) == elements
	for i := range n {
		if ok {
			n[i], ok = v[i].(int64)
		}
	}
	if !ok {
		return Result{}, fmt.Errorf("%w: %.100q", errReply, fmt.Sprint(reply))
	}
	return Result{
		Name: name, Allowed: n[0] == 0, Limit: n[1], Remaining: n[2],
		RetryAfter: seconds(n[3]), ResetAfter: seconds(n[4]),
	}, nil
}

func seconds(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
}

// Near reports whether at least a share of the limit is used, such as 0.8, the server's own where a limit's
// near does not say otherwise.
func (r Result) Near(share float64) bool {
	bounded := r.Limit > 0 && r.Limit != math.MaxInt64
	return bounded && r.Remaining <= r.Limit-int64(math.Ceil(float64(r.Limit)*share))
}

// Headers calls set with the fields that tell a client of the decision: RateLimit-Policy and RateLimit of
// draft-ietf-httpapi-ratelimit-headers-11, as cellserver's HTTP API writes them, and Retry-After if it
// was limited. A limit without a bound has none, nor has a call that is allowed because no server
// decided.
func (r Result) Headers(set func(name, value string)) {
	known := r.Limit != math.MaxInt64 && (r.Err == nil || r.Limit > 0)
	if known {
		name := strconv.Quote(r.Name)
		set("RateLimit-Policy", name+";q="+integer(r.Limit))
		left, after := name+";r="+integer(r.Remaining), r.ResetAfter
		if !r.Allowed {
			after = r.RetryAfter
		}
		if after >= 0 && r.Limit > 0 {
			left += ";t=" + integer(up(after))
		}
		set("RateLimit", left)
	}
	if !r.Allowed && r.RetryAfter >= 0 {
		set("Retry-After", strconv.FormatInt(up(r.RetryAfter), 10))
	}
}

// up returns whole seconds, rounded up.
func up(d time.Duration) int64 { return int64(d/time.Second) + min(1, int64(d%time.Second)) }

// integer returns an integer of structured fields (RFC 9651).
func integer(n int64) string {
	const largest = 999_999_999_999_999
	return strconv.FormatInt(max(0, min(n, largest)), 10)
}

// report logs errors, one in a second.
type report struct {
	mu     sync.Mutex // guards the rest
	last   time.Time
	silent int // errors since then
}

func (p *report) add(text string, err error, to func(error)) {
	if to != nil {
		to(err)
		return
	}
	p.mu.Lock()
	now, silent := time.Now(), p.silent
	logs := now.Sub(p.last) >= time.Second
	if p.silent++; logs {
		p.last, p.silent = now, 0
	}
	p.mu.Unlock()
	if logs {
		slog.Warn(text, "err", err, "errors_not_logged", silent)
	}
}
