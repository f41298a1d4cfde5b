package rls

import (
	"bytes"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
)

// Kuadrant's service checks and charges apart, and holds units of a call whose true number is known later.
// Its limits, keys and rights are those of ShouldRateLimit, and what it holds counts there, too. A limit
// counts once in a call, however many descriptors have its key.

// KuadrantServiceName is the full name of Kuadrant's service.
const KuadrantServiceName = "kuadrant.service.ratelimit.v1.RateLimitService"

const (
	maxReserved = 32 // limits that a hold can have
	maxTTL      = time.Minute
)

// kuadrant returns the procedures by their paths.
func (s *Service) kuadrant() map[string]func(*door.Call, message) (proto.Message, error) {
	const prefix = "/" + KuadrantServiceName + "/"
	return map[string]func(*door.Call, message) (proto.Message, error){
		prefix + "CheckRateLimit": s.checkRateLimit,
		prefix + "Report":         s.report,
		prefix + "Reserve":        s.reserve,
		prefix + "Commit":         s.commit,
	}
}

// answering counts a call and encodes what it returns.
func answering(answer func(*door.Call, message) (proto.Message, error)) func(*door.Call, []byte) ([]byte, error) {
	return func(call *door.Call, m []byte) ([]byte, error) {
		beganNs := call.Conn.Now()
		r, err := answer(call, m)
		if err != nil {
			call.Conn.Count(door.OutcomeOf(codeOf(err)), beganNs)
			return nil, err
		}
		outcome := door.Allowed
		if isOver(r) {
			outcome = door.Limited
		}
		call.Conn.Count(outcome, beganNs)
		return proto.Marshal(r)
	}
}

func isOver(m proto.Message) bool {
	switch r := m.(type) {
	case *rlspb.RateLimitResponse:
		return r.OverallCode == rlspb.RateLimitResponse_OVER_LIMIT
	case *rlspb.ReserveResponse:
		return r.Code == rlspb.RateLimitResponse_OVER_LIMIT
	}
	return false
}

// counted are the limits of a call that have a state, each once, with the requests to them.
type counted struct {
	plan  *plan // nil for a call without a domain
	of    []*applied
	calls []decide.Request
}

// about is a request of any procedure.
type about interface {
	proto.Message
	GetDomain() string
	GetDescriptors() []*rlspb.RateLimitDescriptor
}

// counted decodes a message into a request and finds the limits that it is about.
func (s *Service) counted(c *door.Conn, m message, r about) (n counted, err error) {
	c.BeginTurn()
	defer c.EndTurn()
	if err := m.decodeInto(r); err != nil || r.GetDomain() == "" {
		return n, err
	}
	q, is := r.(*rlspb.RateLimitRequest)
	if !is {
		q = &rlspb.RateLimitRequest{Domain: r.GetDomain(), Descriptors: r.GetDescriptors()}
	}
	if n.plan, _, err = s.match(q); err != nil {
		return n, err
	}
	for i := range n.plan.applied {
		if a := &n.plan.applied[i]; a.what == asked {
			if err := s.add(&n, a, q.Descriptors[i]); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// add adds the request to a descriptor's limit, unless there is one to its key.
func (s *Service) add(n *counted, a *applied, d *rlspb.RateLimitDescriptor) error {
	key := appendKey(nil, &a.rate, n.plan.request.Domain, d, &a.match)
	if slices.ContainsFunc(n.calls, func(q decide.Request) bool { return bytes.Equal(q.Key, key) }) {
		*a = applied{}
		return nil
	}
	q, err := s.request(&a.rate, key, a.hits, true)
	q.Shadow = a.deniesNothing()
	n.of, n.calls = append(n.of, a), append(n.calls, q)
	return err
}

func (a *applied) deniesNothing() bool { return a.isShadow() || a.quota }

func (a *applied) isExact() bool { return a.rate.algorithm == namedlimit.SlidingWindow }

// ask has the requests decided, each by itself.
func (n *counted) ask(call *door.Call) error {
	if len(n.calls) == 0 {
		return nil
	}
	if err := call.Conn.Ask(call, call.User, &decide.Requests{All: n.calls}); err != nil {
		return err
	}
	for i := range n.calls {
		if err := n.calls[i].Err; err != nil {
			return err
		}
		n.of[i].result = n.calls[i].Result
		n.of[i].limitZero()
	}
	return nil
}

// debit has the requests charge all of their units, and those to exact sliding windows as many as are left.
func (n *counted) debit() {
	for i := range n.calls {
		switch q := &n.calls[i]; {
		case q.Quantity <= 0:
		case n.of[i].isExact():
			q.Spec.Flags |= limiter.AtMost
		default:
			q.Spec.Flags |= limiter.Debit
		}
	}
}

// checkRateLimit answers whether one unit more fits, and charges nothing.
func (s *Service) checkRateLimit(call *door.Call, m message) (proto.Message, error) {
	n, err := s.counted(call.Conn, m, &rlspb.RateLimitRequest{})
	if err != nil || n.plan == nil {
		return &rlspb.RateLimitResponse{}, err
	}
	for i := range n.calls {
		n.calls[i].Quantity = 0
	}
	if err := n.ask(call); err != nil {
		return nil, err
	}
	for i := range n.plan.applied {
		a := &n.plan.applied[i]
		if a.hits = 0; a.what >= zero && a.result.Remaining < 1 {
			a.result.Limited, a.hits = true, 1 // the unit is counted as denied
		}
	}
	return &rlspb.RateLimitResponse{OverallCode: s.respond(n.plan, call.Conn.Now()).OverallCode}, nil
}

// report charges hits without a check.
func (s *Service) report(call *door.Call, m message) (proto.Message, error) {
	n, err := s.counted(call.Conn, m, &rlspb.RateLimitRequest{})
	if err != nil || n.plan == nil {
		return &rlspb.RateLimitResponse{}, err
	}
	n.debit()
	if err := n.ask(call); err != nil {
		return nil, err
	}
	n.plan.count(s.config.NearRatio)
	return &rlspb.RateLimitResponse{OverallCode: rlspb.RateLimitResponse_OK}, nil
}

// count counts what was charged, and as over the limit what limits of 0 would have denied.
func (p *plan) count(nearRatio float32) {
	for i := range p.applied {
		a := &p.applied[i]
		a.result.Limited = a.isZero() && a.hits > 0
		a.count(true, nearRatio)
	}
}

// reserve holds an amount of all limits or of none: at most half of each, until its time or a window is over.
func (s *Service) reserve(call *door.Call, m message) (proto.Message, error) {
	r := &rlspb.ReserveRequest{}
	n, err := s.counted(call.Conn, m, r)
	if err != nil || n.plan == nil {
		return &rlspb.ReserveResponse{}, err
	}
	b, err := n.hold(r, s.config.Shadow)
	switch {
	case err != nil:
		return nil, err
	case b.Limited:
	case len(b.All) == 0:
		b.ID = argument.NewHoldID()
	default:
		if err := askBudget(call, b); isCrossSlot(err) {
			return nil, errSlotsReserved
		} else if err != nil {
			return nil, err
		}
	}
	if !b.Limited {
		return &rlspb.ReserveResponse{Code: rlspb.RateLimitResponse_OK, ReservationId: string(b.ID)}, nil
	}
	n.countDenied(s.config.NearRatio)
	return &rlspb.ReserveResponse{Code: rlspb.RateLimitResponse_OVER_LIMIT}, nil
}

func askBudget(call *door.Call, b *decide.Budget) error {
	if err := call.Conn.Ask(call, call.User, b); err != nil {
		return err
	}
	return b.Err
}

// hold makes the call that holds what a request asks for, also beyond limits if all are shadows. It is
// limited if a limit of 0 denies it.
func (n *counted) hold(r *rlspb.ReserveRequest, shadow bool) (*decide.Budget, error) {
	amount := clamped(r.Amount)
	b := &decide.Budget{Verb: decide.Hold, Own: true, Holds: amount, TTLMs: maxTTL.Milliseconds()}
	if n.dropZeros(); len(n.calls) > maxReserved {
		return nil, errManyReserved
	}
	b.All = n.calls
	if ttl := r.Ttl; ttl.IsValid() && ttl.AsDuration() >= 0 {
		b.TTLMs = min(b.TTLMs, ttl.AsDuration().Milliseconds())
	}
	if b.TTLMs == 0 {
		b.TTLMs, b.Holds = 1, 0
	}
	for i, a := range n.of {
		if a.isExact() {
			return nil, errExactReserved
		}
		q := &b.All[i]
		q.Quantity, q.Shadow, b.Holds = amount, q.Shadow || shadow, min(b.Holds, int64(a.rate.count)/2)
	}
	for i := range n.plan.applied {
		a := &n.plan.applied[i]
		a.hits = amount
		b.Limited = b.Limited || a.isZero() && amount > 0 && !shadow && !a.deniesNothing()
	}
	return b, nil
}

// dropZeros drops the requests to limits of 0, which hold nothing.
func (n *counted) dropZeros() {
	all := counted{plan: n.plan}
	for i, a := range n.of {
		if !a.isZero() {
			all.of, all.calls = append(all.of, a), append(all.calls, n.calls[i])
		}
	}
	*n = all
}

func (a *applied) isZero() bool { return a.what >= zero && a.rate.count == 0 }

func clamped(units uint64) int64 { return int64(min(units, math.MaxInt64)) }

// countDenied counts the amount of a call as over the limits that deny it.
func (n *counted) countDenied(nearRatio float32) {
	for i, a := range n.of {
		q := &n.calls[i]
		a.result = q.Result
		a.result.Limited = q.Result.Limited || q.Result.Limit > 0 && q.Result.Remaining < a.hits
	}
	for i := range n.plan.applied {
		a := &n.plan.applied[i]
		if a.result.Limited = a.result.Limited || a.isZero(); a.result.Limited {
			a.count(false, nearRatio)
		}
	}
}

// commit charges what was used, and ends the hold, if there still is one.
func (s *Service) commit(call *door.Call, m message) (proto.Message, error) {
	r := &rlspb.CommitRequest{}
	n, err := s.counted(call.Conn, m, r)
	if err != nil || n.plan == nil {
		return &rlspb.CommitResponse{}, err
	}
	b := n.settling(r)
	if err := settle(call, b); err != nil {
		return nil, err
	}
	n.debit()
	if err := n.ask(call); err != nil {
		return nil, err
	}
	n.plan.count(s.config.NearRatio)
	return &rlspb.CommitResponse{ReservationReleased: b.State == limiter.OpenHold}, nil
}

// settle ends a hold, of each limit by itself where one step cannot end it: what was used is always charged.
func settle(call *door.Call, b *decide.Budget) error {
	if len(b.All) == 0 {
		return nil
	}
	err := askBudget(call, b)
	if !isCrossSlot(err) {
		return err
	}
	for i := range b.All {
		one := &decide.Budget{Verb: b.Verb, Own: true, ID: b.ID, All: b.All[i : i+1]}
		if err := askBudget(call, one); err != nil {
			return err
		}
		if one.State == limiter.OpenHold {
			b.State = one.State
		}
	}
	return nil
}

// settling makes the call that settles the hold of a request. What is left are the requests to limits that
// hold nothing, or to all if they are more than a hold has.
func (n *counted) settling(r *rlspb.CommitRequest) *decide.Budget {
	b := &decide.Budget{Verb: decide.SettleHold, Own: true, ID: []byte(r.ReservationId)}
	used, all, left := clamped(r.ActualAmount), n.calls, counted{plan: n.plan}
	for i := range n.plan.applied {
		n.plan.applied[i].hits = used
	}
	for i, q := range all {
		a := n.of[i]
		if q.Quantity = used; a.isExact() || len(all) > maxReserved {
			left.of, left.calls = append(left.of, a), append(left.calls, q)
			continue
		}
		b.All = append(b.All, q)
		a.result.Remaining = int64(a.rate.count) // of which no reply tells
	}
	*n = left
	return b
}
