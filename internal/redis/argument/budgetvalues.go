package argument

import (
	"strconv"

	"cellserver/internal/decide"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// HoldingOf is Holding of a call by value, which gets the name without a limit that fails it. Its decisions
// are precise.
func HoldingOf(limits *namedlimit.Limits, db uint16, b *decide.Budget) (h *decide.Holding, id []byte, err error) {
	var p pairs
	if err := p.of(limits, db, b, true, 1); err != nil {
		return nil, nil, err
	}
	if b.Unknown = p.unknown; b.Unknown != nil {
		return nil, nil, NoLimit(b.Unknown)
	}
	for i := range p.All {
		if !p.All[i].Named.Debits() {
			return nil, nil, reply.ExactWindowHolds(string(b.All[i].Limit))
		}
	}
	h = &decide.Holding{Pairs: p.All, Precise: true}
	h.Hold.Charge, h.Hold.InWindow = b.Charge, b.Own
	if h.Hold.TTLNs, err = holdTimeOf(b); err != nil {
		return nil, nil, err
	}
	if b.ID != nil {
		if _, err := holdID(b.ID); err != nil {
			return nil, nil, err
		}
	}
	return h, p.identify(&h.Hold, b.ID), nil
}

// SettlingOf is Settling of a call by value. unknown is the first name without a limit.
func SettlingOf(limits *namedlimit.Limits, db uint16, b *decide.Budget) (s *decide.Settling, unknown []byte, err error) {
	var p pairs
	if _, err := holdID(b.ID); err != nil && !b.Own {
		return nil, nil, err
	}
	if err := p.of(limits, db, b, true, 0); err != nil {
		return nil, nil, err
	}
	return &decide.Settling{Pairs: p.All, ID: limiter.HoldIDOf(b.ID), Hash: uint32(p.hash), Always: b.Own}, p.unknown, nil
}

// ExtendingOf is Extending of a call by value. unknown is as in SettlingOf.
func ExtendingOf(limits *namedlimit.Limits, db uint16, b *decide.Budget) (e *decide.Extending, unknown []byte, err error) {
	var p pairs
	if _, err := holdID(b.ID); err != nil {
		return nil, nil, err
	}
	ttlNs, err := holdTimeOf(b)
	if err == nil {
		err = p.of(limits, db, b, false, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	return &decide.Extending{Pairs: p.All, ID: limiter.HoldIDOf(b.ID), Hash: uint32(p.hash), TTLNs: ttlNs}, p.unknown, nil
}

// of takes the pairs of a call by value, with units of at least least if units is set.
func (p *pairs) of(limits *namedlimit.Limits, db uint16, b *decide.Budget, units bool, least int64) (err error) {
	bytes := 0
	for i := range b.All {
		bytes += len(b.All[i].Limit) + 1 + len(b.All[i].Key)
	}
	p.All, p.joined = make([]decide.Pair, len(b.All)), make([]byte, 0, bytes)
	for i := range b.All {
		q := &b.All[i]
		if b.Own {
			if err = p.own(i, db, b); err != nil {
				return err
			}
			continue
		}
		if q.Policy, err = p.add(i, limits, db, q.Limit, q.Key); err == nil && units {
			err = p.setUnits(i, q.Quantity, least)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// own takes a pair of a limit of the caller's own. Its key counts in no hash: a hold may be settled by other
// limits.
func (p *pairs) own(i int, db uint16, b *decide.Budget) error {
	q, of := &b.All[i], &p.All[i]
	var made store.Request
	if err := Own(&made, db, &q.Spec, q.Key, q.Quantity); err != nil {
		return err
	}
	of.Key, of.Units, of.Named = made.Key, q.Quantity, limiter.Alone(made.Rule)
	if of.Named.Shadow = q.Shadow; b.Verb == decide.Hold {
		of.Units, of.Asked = b.Holds, q.Quantity
	}
	return nil
}

func holdTimeOf(b *decide.Budget) (ns int64, err error) {
	const name = "ttl_ms"
	if ns, err = Milliseconds(name, b.TTLMs); err == nil {
		err = checkHoldTime(name, ns, strconv.FormatInt(b.TTLMs, 10))
	}
	return ns, err
}
