package rls

import (
	"context"
	"slices"

	"cellserver/internal/decide"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/funnel"
	"cellserver/internal/wire/acl"
)

// plan is a request with what applies to its descriptors.
type plan struct {
	request  *rlspb.RateLimitRequest
	applied  []applied
	calls    []decide.Request // decided in order, each by itself
	together []decide.Request // which charge all or none
	limited  bool             // one of together, or a limit of 0 beside them, denies, so that none of them is charged
}

// newPlan has nothing that applies to the descriptors yet.
func newPlan(r *rlspb.RateLimitRequest, quota bool) *plan {
	p := &plan{request: r, applied: make([]applied, len(r.Descriptors))}
	for i := range p.applied {
		p.applied[i].quota = quota
	}
	return p
}

// applied is what applies to a descriptor.
type applied struct {
	what   what
	rate   rate
	hits   int64
	match  envoyconfig.Match
	quota  bool // in quota_mode, as all are with Config.Quota
	counts *Counts
	result funnel.Result // in milliseconds; without times if the limit is 0
}

type what uint8

const (
	nothing what = iota
	unlimited
	zero  // the limit is 0, and nothing counts its hits
	asked // by a call
	askedTogether
)

// plan finds what applies to a request. Nothing does in a domain that the configuration does not have.
func (s *Service) plan(r *rlspb.RateLimitRequest) (*plan, error) {
	switch {
	case r.Domain == "":
		return nil, errNoDomain
	case len(r.Descriptors) == 0:
		return nil, errNoDescriptors
	}
	p, domain, err := s.match(r)
	if err != nil {
		return nil, err
	}
	return p, s.compose(p, domain != nil && domain.AllOrNothing)
}

// match finds what applies to a request, and its domain, nil for an unknown one.
func (s *Service) match(r *rlspb.RateLimitRequest) (*plan, *envoyconfig.Domain, error) {
	p, domain := newPlan(r, s.config.Quota), (*envoyconfig.Domain)(nil)
	if rules := s.config.Rules(); rules != nil {
		if domain = rules.Domain(r.Domain); domain == nil {
			s.Metrics.notFound.Add(1)
			return p, nil, nil
		}
	} else if s.config.AwaitsRules {
		return nil, nil, errNoRules
	}
	for i, d := range r.Descriptors {
		if err := s.apply(&p.applied[i], domain, d, r); err != nil {
			return nil, nil, err
		}
	}
	p.replace(s.config.Quota)
	return p, domain, nil
}

// apply finds what applies to a descriptor: the limit that it brings, or the configured one.
func (s *Service) apply(a *applied, domain *envoyconfig.Domain, d *rlspb.RateLimitDescriptor, r *rlspb.RateLimitRequest) (err error) {
	a.hits = hitsOf(r, d)
	switch {
	case d.Limit != nil:
		if a.rate, err = overrideOf(d.Limit); err != nil {
			return err
		}
		a.counts = s.Metrics.ofRequest(r.Domain, d)
	case domain != nil:
		if a.match = envoyconfig.Find(domain, d.Entries); a.match.Descriptor == nil {
			return nil
		}
		if a.match.Rate.Unlimited {
			a.what = unlimited
			return nil
		}
		a.rate, a.quota = rateOf(a.match.Rate), a.quota || a.match.Quota
		if a.match.IsDynamic() {
			a.counts = s.Metrics.ofValues(r.Domain, envoyconfig.Metric(domain, &a.match, d.Entries), a.match.Path)
		} else {
			a.counts = s.Metrics.of(r.Domain, a.match.Path)
		}
	default:
		return nil
	}
	a.what = asked
	if a.rate.count == 0 && (a.rate.algorithm != namedlimit.Quota || domain != nil && domain.AllOrNothing) {
		a.what = zero
		a.result.Limited = a.hits > 0
	}
	return nil
}

// replace drops limits that others of the request replace. quota says what is left of them.
func (p *plan) replace(quota bool) {
	var replaced []string
	for i := range p.applied {
		if m := &p.applied[i].match; m.Descriptor != nil {
			for _, entry := range m.Rate.Replaces {
				replaced = append(replaced, entry.Name)
			}
		}
	}
	if len(replaced) == 0 {
		return
	}
	for i := range p.applied {
		if a := &p.applied[i]; a.what >= zero && slices.Contains(replaced, a.rate.name) {
			*a = applied{quota: quota}
		}
	}
}

// compose makes the requests. Limits that alone deny nothing are no part of all or nothing.
func (s *Service) compose(p *plan, allOrNothing bool) error {
	keys := make([]byte, 0, 64*len(p.applied))
	p.calls = make([]decide.Request, 0, len(p.applied))
	for i := range p.applied {
		a := &p.applied[i]
		if a.what != asked {
			p.limited = p.limited || allOrNothing && a.what == zero && a.result.Limited && !a.deniesNothing()
			continue
		}
		from := len(keys)
		keys = appendKey(keys, &a.rate, p.request.Domain, p.request.Descriptors[i], &a.match)
		together := allOrNothing && !a.deniesNothing()
		q, err := s.request(&a.rate, keys[from:len(keys):len(keys)], a.hits, together)
		switch {
		case err != nil:
			return err
		case together:
			a.what = askedTogether
			p.together = append(p.together, q)
		default:
			p.calls = append(p.calls, q)
		}
	}
	return nil
}

func (a *applied) isShadow() bool { return a.match.Descriptor != nil && a.match.Shadow }

// ask has the requests decided.
func (p *plan) ask(ctx context.Context, c *door.Conn, user *acl.User) error {
	if len(p.together) > 0 {
		if err := p.askTogether(ctx, c, user); err != nil {
			return err
		}
	}
	if len(p.calls) == 0 {
		return nil
	}
	if err := c.Ask(ctx, user, &decide.Requests{All: p.calls}); err != nil {
		return err
	}
	return p.take(asked, p.calls)
}

// askTogether has those decided that charge all or none. Beside a limit of 0 that denies they charge none.
func (p *plan) askTogether(ctx context.Context, c *door.Conn, user *acl.User) error {
	looks := p.limited
	for i := range p.together {
		if looks {
			p.together[i].Quantity = 0
		}
	}
	asked := &decide.Together{All: p.together}
	if err := c.Ask(ctx, user, asked); err != nil {
		return err
	}
	if asked.Err != nil {
		return asked.Err
	}
	if err := p.take(askedTogether, asked.All); err != nil {
		return err
	}
	for i := range p.applied {
		if a := &p.applied[i]; looks && a.what == askedTogether {
			a.result.Limited = a.result.Limited || a.hits > a.result.Remaining
		}
	}
	return nil
}

// take takes the results of decided requests.
func (p *plan) take(of what, requests []decide.Request) error {
	for i := range requests {
		if err := requests[i].Err; err != nil {
			return err
		}
	}
	for i := range p.applied {
		if a := &p.applied[i]; a.what == of {
			a.result, requests = requests[0].Result, requests[1:]
			a.limitZero()
			p.limited = p.limited || of == askedTogether && a.result.Limited
		}
	}
	return nil
}

// stopWhenOver looks at all limits first. If the request exceeds some, only those are charged with their
// hits, and the others are looked at again. There, too, others may be charged between the two.
func (p *plan) stopWhenOver(ctx context.Context, c *door.Conn, user *acl.User) error {
	looks := slices.Clone(p.calls)
	for i := range looks {
		looks[i].Quantity = 0
	}
	if len(looks) == 0 {
		return nil
	}
	if err := c.Ask(ctx, user, &decide.Requests{All: looks}); err != nil {
		return err
	}
	if err := p.take(asked, looks); err != nil {
		return err
	}
	var within []*decide.Request
	for i, next := 0, 0; i < len(p.applied); i++ {
		a := &p.applied[i]
		if a.what != asked {
			continue
		}
		if !a.result.Limited && a.hits <= a.result.Remaining {
			within = append(within, &p.calls[next])
		}
		next++
	}
	if len(within) == len(p.calls) {
		return nil
	}
	for _, q := range within {
		q.Quantity = min(q.Quantity, 0)
	}
	return nil
}

// limitZero corrects the result of a limit of 0, for which a call of 1 counts: any hit exceeds it.
func (a *applied) limitZero() {
	if a.rate.count > 0 {
		return
	}
	a.result.Limited = a.hits >= 0 && a.result.Remaining == 0
	a.result.Remaining = 0
}
