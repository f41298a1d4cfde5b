package cellserver

import (
	"context"
	"iter"
	"time"
)

// Stream returns the chunks of an answer for which h holds units, extends the hold while they last, and
// settles it:
//
//	the end                  what was counted; without count the caller settles, who is told by the last chunk
//	the loop ends early,     what was counted; without count all that was held
//	or ctx has ended
//	an error of the chunks   what was counted; without count nothing
//
// Count returns a chunk's units, as for Settle. A Settle in the loop, such as by the usage that a model
// tells at the end, or at its error, comes before these. ctx is the client's.
func Stream[T any](
	ctx context.Context, h *Hold, chunks iter.Seq2[T, error], count func(T) []int64,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer h.keep(ctx)()
		var used []int64
		for chunk, err := range chunks {
			if err == nil && count != nil {
				used = plus(used, count(chunk))
			}
			goesOn := yield(chunk, err)
			hungUp := ctx.Err() != nil || err == nil && !goesOn
			if err == nil && !hungUp {
				continue
			}
			if hungUp && count == nil {
				used = h.heldUnits()
			}
			h.settleStream(ctx, used)
			return
		}
		if count != nil {
			h.settleStream(ctx, used)
		}
	}
}

// plus adds units of each use, or of all.
func plus(sum, n []int64) []int64 {
	switch {
	case len(n) == 0:
		return sum
	case len(sum) == 0:
		return append(sum, n...)
	}
	for i := range sum {
		sum[i] += n[min(i, len(n)-1)]
	}
	return sum
}

func (h *Hold) heldUnits() (units []int64) {
	for _, u := range h.uses {
		units = append(units, u.Units)
	}
	return units
}

func (h *Hold) settleStream(ctx context.Context, used []int64) {
	if len(used) == 0 {
		used = []int64{0}
	}
	if err := h.Settle(ctx, used...); err != nil {
		h.limiter.report.add("cellserver: not settled", err, h.limiter.Report)
	}
}

// keep extends the hold in time until stop, or until ctx ends.
func (h *Hold) keep(ctx context.Context) (stop func()) {
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
