package cellserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Use is units of a key under the name of a limit.
type Use struct {
	Limit, Key string
	Units      int64
}

// HoldOptions are how units are held.
type HoldOptions struct {
	TTL    time.Duration // after which an unsettled hold is returned: whole milliseconds, at most a day
	Charge bool          // it stays charged then, as for a model that is paid whatever became of the answer
	ID     string        // for a caller that may repeat the call, 1 to 32 bytes; "" is a new one
}

// Hold is units of several limits for a cost that is known afterwards. It is safe for concurrent use.
type Hold struct {
	Allowed bool     // all is held, or nothing
	Results []Result // one for each Use; a hold that is not Allowed has at least one that is not
	Err     error    // why no server decided; nil if one did

	limiter *Limiter
	opt     HoldOptions
	id      string
	uses    []Use
	shared  bool // an earlier process, or another caller with the ID, may settle it, too

	mu      sync.Mutex // guards the rest; before those of counted and outbox
	state   holdState
	overdue *time.Timer // of a hold counted in this process
	warned  bool
}

// The states of a hold:
//
//	none      -- Settle --> settled      nothing is sent
//	held      -- Settle --> settled      the server knows when its time is over
//	counted   -- Settle --> settled
//	counted   -- its time --> returned   with Charge --> settled
//	returned  -- Settle --> settled
type holdState uint8

const (
	none     holdState = iota // not allowed, or by Open without a server
	held                      // a server has it
	counted                   // this process has it, as no server decided
	returned                  // as counted, but its time is over
	settled                   // or its settlement waits in the outbox
)

// Stage is what has become of a hold, for Limiter.Note.
type Stage uint8

const (
	Held    Stage = iota // a server has what was counted in this process, and will be told the units
	Settled              // the settlement was answered, or must not be sent again
)

// Errors of holds.
var (
	// ErrNoHold reports a settlement of a hold, resumed or with an ID of the caller's, that the server
	// does not have: it was settled before, or is lost, or its time has been over for a day. Nothing has
	// changed.
	ErrNoHold = errors.New("cellserver: the server has no such hold")
	// ErrUnsettled is reported for a hold that Close has found unsettled.
	ErrUnsettled = errors.New("cellserver: a hold was closed without Settle or Cancel, so its time decides")

	errUses   = errors.New("cellserver: a hold needs 1 to 32 Uses, each with Units of at least 1")
	errTwice  = errors.New("cellserver: a hold has a limit and key twice; give them once, with all their units")
	errTTL    = errors.New("cellserver: a hold's time is 1 ms to 24 h")
	errUnits  = errors.New("cellserver: Settle needs units for each Use, or one number for all, none negative")
	errClosed = errors.New("cellserver: the limiter is closed")
)

// USD returns dollars in millionths, the units of a limit with unit usd, rounded up. It is 0 for what is no
// amount.
func USD(dollars float64) int64 {
	const millionths, noise = 1e6, 1e-4 // noise is what floating point adds to 0.3 dollars
	switch n := dollars * millionths; {
	case !(n > 0):
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	default:
		return max(1, int64(math.Ceil(n-noise)))
	}
}

// Hold holds the units of all uses for at most ttl, or of none. Settle it with what was used, and defer
// Close. Errors are those of Allow. Local counts units in this process by LocalUnits, and has the server
// charge them when it is back.
func (l *Limiter) Hold(ctx context.Context, ttl time.Duration, uses ...Use) (*Hold, error) {
	return l.HoldBy(ctx, HoldOptions{TTL: ttl}, uses...)
}

// HoldBy is Hold with options.
func (l *Limiter) HoldBy(ctx context.Context, opt HoldOptions, uses ...Use) (*Hold, error) {
	if opt.TTL < time.Millisecond || opt.TTL > maxTTL {
		return nil, errTTL
	}
	h := l.holdOf(opt.ID, uses)
	h.opt, h.shared = opt, opt.ID != ""
	if err := checkUses(h.uses); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args := []any{"CL.MRESERVE", len(uses)}
	for _, u := range h.uses {
		args = append(args, u.Limit, u.Key, u.Units)
	}
	args = append(args, "TTL", opt.TTL.Milliseconds(), "ID", h.id)
	if opt.Charge {
		args = append(args, "CHARGE")
	}
	v, err := l.ask(ctx, args...)
	if err == nil {
		h.Results, h.Allowed, err = readAll(h.uses, v)
	}
	if err != nil {
		return h, h.withoutServer(ctx, err)
	}
	if h.Allowed && slices.ContainsFunc(h.Results, isHeld) {
		h.state = held
	}
	return h, nil
}

// checkUses checks what Local would find out only when the server is to charge it.
func checkUses(uses []Use) error {
	const most = 32
	if len(uses) == 0 || len(uses) > most {
		return errUses
	}
	for i, u := range uses {
		if u.Units < 1 {
			return errUses
		}
		if slices.ContainsFunc(uses[:i], func(other Use) bool { return other.name() == u.name() }) {
			return errTwice
		}
	}
	return nil
}

// isHeld reports whether a server keeps units of an allowed use: of an unlimited key it keeps none.
func isHeld(r Result) bool { return r.Limit != math.MaxInt64 }

// Resume returns a hold of an earlier process, by what that has written down: its ID, whether it was Counted
// there, and its uses. It sends nothing.
func (l *Limiter) Resume(id string, wasCounted bool, uses ...Use) *Hold {
	h := l.holdOf(id, uses)
	h.Allowed, h.state, h.shared = true, held, true
	h.opt.TTL = maxTTL
	if wasCounted {
		h.state = returned
	}
	return h
}

const maxTTL = 24 * time.Hour

func (l *Limiter) holdOf(id string, uses []Use) *Hold {
	h := &Hold{limiter: l, id: id, uses: make([]Use, len(uses))}
	for i, u := range uses {
		u.Key = bound(u.Key)
		h.uses[i] = u
	}
	if h.id == "" {
		h.id = newID()
	}
	return h
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// readAll reads the reply of CL.MRESERVE.
func readAll(uses []Use, reply any) (results []Result, allowed bool, err error) {
	v, _ := reply.([]any)
	if len(v) != 1+len(uses)+1 {
		return nil, false, fmt.Errorf("%w: %.100q", errReply, fmt.Sprint(reply))
	}
	results = make([]Result, len(uses))
	for i := range results {
		if results[i], err = read(uses[i].Limit, v[1+i], integers); err != nil {
			return nil, false, err
		}
	}
	return results, v[0] == int64(0), nil
}

// withoutServer decides by OnError, as the server has not, or returns an error.
func (h *Hold) withoutServer(ctx context.Context, reason error) error {
	l := h.limiter
	mayBeHeld := isUnavailable(reason) && !wasNotSent(reason)
	reason, err := l.undecided(ctx, reason)
	// A caller with an ID asks again, unless the units are allowed without a server.
	if mayBeHeld && (h.opt.ID == "" || err == nil && l.OnError != Closed) {
		_ = l.outbox.put(l, &settlement{id: h.id, uses: withUnits(h.uses, 0), stage: canceling})
	}
	if err != nil {
		return err
	}
	h.Err = reason
	switch l.OnError {
	case Open:
		h.Allowed = true
		for _, u := range h.uses {
			h.Results = append(h.Results, Result{Name: u.Limit, Allowed: true, RetryAfter: -1, Err: reason})
		}
		return nil
	case Local:
		return h.count(reason)
	default:
		return reason
	}
}

// count holds the units in this process.
func (h *Hold) count(reason error) (err error) {
	l := h.limiter
	if h.Results, h.Allowed, err = l.counted.take(l.LocalUnits, h.uses); err != nil {
		return fmt.Errorf("%w, and %w", reason, err)
	}
	for i := range h.Results {
		h.Results[i].Err = reason
	}
	if h.Allowed {
		h.id = newID() // the server may have a hold of the other
		h.state = counted
		h.overdue = time.AfterFunc(h.opt.TTL, h.end)
	}
	return nil
}

// end ends the time of a counted hold.
func (h *Hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != counted {
		return
	}
	if h.opt.Charge {
		h.state = settled
		_ = h.limiter.outbox.put(h.limiter, &settlement{id: h.id, uses: slices.Clone(h.uses), stage: reserving, local: true})
		return
	}
	h.state = returned
	h.limiter.counted.add(h.uses, withUnits(h.uses, 0))
}

// ID returns what names the hold in the server. It is another one than was asked for if the hold is Counted.
func (h *Hold) ID() string { return h.id }

// Counted reports whether the units are counted in this process, as no server decided.
func (h *Hold) Counted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state == counted || h.state == returned
}

// Settle reports the units that were used, one number for each Use in their order, or one for all. Fewer
// than held return the rest, more are charged beyond the limits, also when the hold's time is over. Only
// the first Settle counts. It is sent also if ctx has ended, and without an answer again until there is
// one (Settlements); an error says that it never will be. If the server has lost the hold, the units are
// charged.
func (h *Hold) Settle(ctx context.Context, units ...int64) error {
	used, err := settledUses(h.uses, units)
	if err != nil {
		return err
	}
	h.mu.Lock()
	was := h.state
	h.state = settled
	if h.overdue != nil {
		h.overdue.Stop()
	}
	h.mu.Unlock()
	s, l := &settlement{id: h.id, uses: used}, h.limiter
	switch was {
	case held:
		s.stage, s.shared = committing, h.shared
		ctx = context.WithoutCancel(ctx)
		// Behind others that wait for the server, it would wait in vain for an answer.
		if l.outbox.isAway() {
			return l.outbox.put(l, s)
		}
		outcome, err := s.send(ctx, l)
		if outcome == unanswered {
			return l.outbox.put(l, s)
		}
		return err
	case counted, returned:
		from := h.uses
		if was == returned {
			from = withUnits(h.uses, 0)
		}
		l.counted.add(from, used)
		s.stage, s.local = reserving, true
		return l.outbox.put(l, s)
	case none:
		l.note(h.id, Settled)
	case settled:
	}
	return nil
}

func settledUses(uses []Use, units []int64) ([]Use, error) {
	if len(units) != 1 && len(units) != len(uses) {
		return nil, errUnits
	}
	for _, n := range units {
		if n < 0 {
			return nil, errUnits
		}
	}
	if len(units) == 1 {
		return withUnits(uses, units[0]), nil
	}
	used := withUnits(uses, 0)
	for i := range used {
		used[i].Units = units[i]
	}
	return used, nil
}

// withUnits returns the uses with other units.
func withUnits(uses []Use, n int64) []Use {
	with := make([]Use, len(uses))
	for i, u := range uses {
		u.Units = n
		with[i] = u
	}
	return with
}

// Cancel settles 0 units.
func (h *Hold) Cancel(ctx context.Context) error { return h.Settle(ctx, 0) }

// Extend has the hold's time end ttl from now, and reports whether it was still open.
func (h *Hold) Extend(ctx context.Context, ttl time.Duration) (open bool, err error) {
	if ttl < time.Millisecond || ttl > maxTTL {
		return false, errTTL
	}
	h.mu.Lock()
	state := h.state
	if state == counted {
		open = h.overdue.Reset(ttl) // false if its time is over, and end waits for mu
	}
	h.mu.Unlock()
	if state != held {
		return open, nil
	}
	args := []any{"CL.MEXTEND", h.id, ttl.Milliseconds(), len(h.uses)}
	for _, u := range h.uses {
		args = append(args, u.Limit, u.Key)
	}
	v, err := h.limiter.ask(ctx, args...)
	return v == int64(1), err
}

// Close is for defer. It sends nothing: the time of a hold that is neither settled nor cancelled decides,
// and it is reported once.
func (h *Hold) Close() {
	h.mu.Lock()
	leaves := (h.state == held || h.state == counted) && !h.warned
	h.warned = h.warned || leaves
	h.mu.Unlock()
	if leaves {
		h.limiter.report.add("cellserver: unsettled", fmt.Errorf("%w: %s", ErrUnsettled, h.id), h.limiter.Report)
	}
}
