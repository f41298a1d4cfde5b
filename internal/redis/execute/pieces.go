package execute

import (
	"bytes"
	"slices"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// A long reply is given out in pieces, each a turn of its client, so that others are served between them.

// PieceBytes of replies end a client's turn.
const PieceBytes = 64 << 10

// Pieces appends the next piece of a reply. It returns about how many bytes are held for the others, 0 for
// none.
type Pieces func(x *Executor) (held int)

// AppendPieces appends pieces until there are enough for a turn, and returns what is held for the others.
func (x *Executor) AppendPieces(next Pieces) (held int) {
	for from := len(x.W.Buf); ; {
		if held = next(x); held == 0 || len(x.W.Buf)-from >= PieceBytes {
			return held
		}
	}
}

// InTurns replies in pieces. In EXEC and scripts, all follow at once.
func (c Call) InTurns(next func(c Call) (held int)) {
	c.x.Role.InTurns(c.x, func(x *Executor) int { return next(Call{x: x, nowNs: c.nowNs}) })
}

// TakeOver replies with bytes that are the caller's no more.
func (c Call) TakeOver(replies []byte) { c.x.TakeOver(Parts{last: replies}) }

// Parts is a reply in buffers, so that it grows without being copied. The zero value is empty.
type Parts struct {
	full  [][]byte
	last  []byte
	bytes int // of full
}

const (
	// partBytes is the size of a buffer, which is full with two thirds of it: another value may not fit.
	partBytes = 256 << 10
	fullBytes = partBytes * 2 / 3
)

// Take moves the replies of an Executor to the parts if they fill a buffer.
func (p *Parts) Take(x *Executor) {
	if len(x.W.Buf) < fullBytes {
		return
	}
	p.full = append(p.full, x.W.Buf)
	p.bytes += len(x.W.Buf)
	x.W.Buf = x.Engine.parts.Get(partBytes)[:0]
}

// End moves the rest.
func (p *Parts) End(x *Executor) { p.last, x.W.Buf = x.W.Buf, nil }

// Bytes returns the bytes of the parts.
func (p *Parts) Bytes() int { return p.bytes + len(p.last) }

// Drop makes the parts empty.
func (p *Parts) Drop(e *Engine) {
	for _, b := range append(p.full, p.last) {
		e.putPart(b)
	}
	*p = Parts{}
}

// putPart keeps a buffer for other replies.
func (e *Engine) putPart(b []byte) {
	if cap(b) == partBytes {
		e.parts.Put(b[:partBytes])
	}
}

// TakeOver replies with parts, which are the caller's no more.
func (x *Executor) TakeOver(p Parts) {
	if len(p.full) == 0 && len(p.last) <= PieceBytes {
		x.W.Buf = append(x.W.Buf, p.last...)
		x.Engine.putPart(p.last)
		return
	}
	all, left, taken := slices.Concat(p.full, [][]byte{p.last}), p.Bytes(), 0
	x.Role.InTurns(x, func(x *Executor) (held int) {
		n := min(len(all[0])-taken, PieceBytes)
		x.W.Buf = append(x.W.Buf, all[0][taken:taken+n]...)
		left -= n
		if taken += n; taken == len(all[0]) {
			x.Engine.putPart(all[0])
			all[0] = nil
			all, taken = all[1:], 0
		}
		return left
	})
}

// replyReads replies to a batch of GET. Its values may be megabytes together, so those beyond a turn's bytes
// are read in the next turns.
func (x *Executor) replyReads(c *catalog.Command, batch []store.Request) {
	from := len(x.W.Buf)
	for i := range batch {
		if len(x.W.Buf)-from >= PieceBytes {
			x.readInTurns(c, batch[i:])
			return
		}
		x.replyRead(c, &batch[i])
	}
	x.spend(len(x.W.Buf) - from) // a byte takes about a nanosecond
}

func (x *Executor) replyRead(c *catalog.Command, q *store.Request) {
	if q.Err != nil {
		x.FailCommand(c, nil, reply.StoreFailed(q.Err))
	} else {
		x.replyRequest(c, q)
	}
}

// readInTurns reads again, so that each value is of the time of its reply.
func (x *Executor) readInTurns(c *catalog.Command, batch []store.Request) {
	const requestBytes = 256
	left, held := slices.Clone(batch), len(batch)*requestBytes
	for i := range left {
		q := &left[i]
		q.Key.Name = bytes.Clone(q.Key.Name)
		q.Rule.Shared, q.Err = nil, nil
		q.Result.Remaining, q.Result.RetryAfter = limiter.LongText, min(q.Result.RetryAfter, PieceBytes)
		held += len(q.Key.Name)
	}
	x.Role.InTurns(x, func(x *Executor) int {
		x.replyRead(c, &left[0])
		held -= requestBytes + len(left[0].Key.Name)
		left = left[1:]
		return held
	})
}

// reading is a store.Step that shows a state.
type reading struct {
	limiter.Base
	see func(s *limiter.State, found bool, nowNs int64) error
}

func (r *reading) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	return false, r.see(s, s.ExpiresNs > nowNs, nowNs)
}

func (r *reading) MakesKey() bool { return false }

func (r *reading) Traits() limiter.Traits {
	return limiter.Traits{Kind: limiter.Value, KeepsPayload: true}
}

func (r *reading) Copy() (c store.Step, take func()) { return r, func() {} }

// replyText reads a value into the reply, for which there is room, so that nothing is allocated under the
// store's locks.
func (x *Executor) replyText(q *store.Request) error {
	const headBytes = 32
	x.W.Buf = slices.Grow(x.W.Buf, int(q.Result.RetryAfter)+headBytes)
	return x.read(q.Key, func(s *limiter.State, found bool, nowNs int64) error { return ReplyString(&x.W, s, found, nowNs) })
}

func (x *Executor) read(key store.Key, see func(s *limiter.State, found bool, nowNs int64) error) error {
	shared := &x.Scratch.reading // avoids an allocation
	shared.see = see
	err := x.Space.Keys.Apply(x.Now(), key, shared)
	shared.see = nil // it would keep the executor alive
	return err
}

// See shows a key's state if it is there. It is the store's, and locked: see must be short and keep nothing.
func (c Call) See(name []byte, see func(s *limiter.State)) error {
	return reply.StoreFailed(c.x.read(c.Key(name), func(s *limiter.State, found bool, _ int64) error {
		if found {
			see(s)
		}
		return nil
	}))
}
