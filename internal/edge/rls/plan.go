package rls

import (
	"context"
	"slices"

	"cellserver/internal/decide"
	"cellserver/internal/decide/envoyconfig"
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
	limited  bool             // one of together is limited, so that none of them was charged
}

// applied is what applies to a descriptor.
type applied struct {
	what   what
	rate   rate
	hits   int64
	match  envoyconfig.Match
	counts *Counts
	result funnel.Result // in milliseconds; without times if the limit is 0
}

type what uint8

const (
	nothing what = iota
	unlimited
	zero  // the limit is 0
	asked // by a call
	askedTogether
)

// plan decodes a request and finds what applies to it.
func (s *Service) plan(m message) (*plan, error) {
	r, err := m.decode()
	switch {
	case err != nil:
		return nil, err
	case r.Domain == "":
		return nil, errNoDomain
	case len(r.Descriptors) == 0:
		return nil, errNoDescriptors
	}
	p := &plan{request: r, applied: make([]applied, len(r.Descriptors))}
	domain := s.domain(r.Domain)
	for i, d := range r.Descriptors {
		if err := s.apply(&p.applied[i], domain, d, r); err != nil {
			return nil, err
		}
	}
	p.replace()
	return p, s.compose(p, domain != nil && domain.AllOrNothing)
}

func (s *Service) domain(name string) *envoyconfig.Domain {
	rules := s.config.Rules()
	if rules == nil {
		return nil
	}
	d := rules.Domain(name)
	if d == nil {
		s.Metrics.notFound.Add(1)
	}
	return d
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
		a.rate = rateOf(a.match.Rate)
		if a.match.IsDynamic() {
			a.counts = s.Metrics.ofValues(r.Domain, envoyconfig.Metric(domain, &a.match, d.Entries), a.match.Path)
		} else {
			a.counts = s.Metrics.of(r.Domain, a.match.Path)
		}
	default:
		return nil
	}
	a.what = asked
	if a.rate.count == 0 {
		a.what = zero
		a.result.Limited = a.hits > 0
	}
	return nil
}

// replace drops limits that others of the request replace.
func (p *plan) replace() {
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
			*a = applied{}
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
			continue
		}
		from := len(keys)
		keys = appendKey(keys, &a.rate, p.request.Domain, p.request.Descriptors[i], &a.match)
		together := allOrNothing && !a.isShadow() && !a.isQuota()
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
func (a *applied) isQuota() bool  { return a.match.Descriptor != nil && a.match.Quota }

// ask has the requests decided.
func (p *plan) ask(ctx context.Context, c *door.Conn, user *acl.User) error {
	if len(p.together) > 0 {
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
	}
	if len(p.calls) == 0 {
		return nil
	}
	if err := c.Ask(ctx, user, &decide.Requests{All: p.calls}); err != nil {
		return err
	}
	return p.take(asked, p.calls)
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
			p.limited = p.limited || of == askedTogether && a.result.Limited
		}
	}
	return nil
}
