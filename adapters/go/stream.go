package cellserver

import (
	"context"
	"iter"
	"time"
)

// Stream returns the chunks of an answer for which h holds units, extends the hold while they last, and
// settles it:
//
//	the end                  what was counted; without count the caller settles, as the last chunk tells
//	the loop ends early,     what was counted; without count all that was held
//	or ctx has ended
//	an error of the chunks   what was counted; without count nothing
//
// Count returns a chunk's units, as for Settle, or none. A Settle in the loop, such as by the usage that a
// model tells at the end, or at its error, comes before these. ctx is the client's.
func Stream[T any](
	ctx context.Context, h *Hold, chunks iter.Seq2[T, error], count func(T) []int64,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer h.Keep(ctx)()
		used := make([]int64, len(h.uses))
		var failed, hungUp bool
		for chunk, err := range chunks {
			if failed = err != nil; !failed && count != nil {
				h.plus(used, count(chunk))
			}
			goesOn := yield(chunk, err)
			if hungUp = !goesOn && !failed; hungUp || failed || ctx.Err() != nil {
				break
			}
		}
		switch hungUp = hungUp || ctx.Err() != nil; {
		case count == nil && hungUp:
			for i, u := range h.uses {
				used[i] = u.Units
			}
		case count == nil && !failed:
			return
		}
		if err := h.Settle(ctx, used...); err != nil {
			h.limiter.report.add("cellserver: not settled", err, h.limiter.Report)
		}
	}
}

// plus adds the units of a chunk, of each use or of all.
func (h *Hold) plus(sum, n []int64) {
	if len(n) == 0 {
		return
	}
	counted, err := settledUses(h.uses, n)
	if err != nil {
		h.limiter.report.add("cellserver: a chunk is not counted", err, h.limiter.Report)
	}
	for i, u := range counted {
		sum[i] += u.Units
	}
}

// Keep extends the hold in time until stop, or until ctx ends, for what may last longer than it.
func (h *Hold) Keep(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		// Two tries fit before the end.
		ticker := time.NewTicker(max(time.Millisecond, h.opt.TTL/3))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if _, err := h.Extend(ctx, h.opt.TTL); err != nil && ctx.Err() == nil {
					h.limiter.report.add("cellserver: not extended", err, h.limiter.Report)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}
