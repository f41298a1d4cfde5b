package rls

import (
	"strings"
	"sync"
	"sync/atomic"

	"cellserver/internal/edge/rls/rlspb"
)

// Counts counts the hits of a rule, under envoyproxy/ratelimit's names. A denied request's hits are all over
// the limit, even if some would have fitted.
type Counts struct {
	TotalHits, WithinLimit, NearLimit, OverLimit, ShadowMode atomic.Uint64
}

// count counts a decided descriptor. Without charged it was allowed, but charged nothing.
func (a *applied) count(charged bool, nearRatio float32) {
	if a.counts == nil || a.what < zero || a.hits < 0 {
		return
	}
	hits := uint64(a.hits)
	a.counts.TotalHits.Add(hits)
	switch {
	case a.result.Limited:
		a.counts.OverLimit.Add(hits)
		if a.isShadow() {
			a.counts.ShadowMode.Add(hits)
		}
	case charged:
		a.counts.WithinLimit.Add(hits)
		if over := a.beyondNear(nearRatio); over > 0 {
			a.counts.NearLimit.Add(min(hits, uint64(over)))
		}
	}
}

// Metrics counts by rule. Bounds keep clients from adding rows without end.
type Metrics struct {
	notFound, globalShadow atomic.Uint64

	mu     sync.RWMutex // rank 90: guards all below
	counts map[rule]*Counts
	values int // of counts, of rules with values of requests
}

// rule is what a row is known by.
type rule struct{ domain, descriptor string }

// Bounds of rows:
const (
	maxRules      = 1024
	maxValues     = 512 // with values of requests
	maxLabelBytes = 256
)

func newMetrics() *Metrics { return &Metrics{counts: map[rule]*Counts{}} }

// NotFound returns the number of requests for domains that are not in the configuration.
func (m *Metrics) NotFound() uint64 { return m.notFound.Load() }

// GlobalShadow returns the number of requests that Config.Shadow alone has allowed.
func (m *Metrics) GlobalShadow() uint64 { return m.globalShadow.Load() }

// Each visits the rows, in no order. A descriptor is a rule's keys and values from the top, as
// "key_value.key". The row for all rules beyond the bound has neither domain nor descriptor.
func (m *Metrics) Each(visit func(domain, descriptor string, c *Counts)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for r, c := range m.counts {
		visit(r.domain, r.descriptor, c)
	}
}

func (m *Metrics) of(domain, descriptor string) *Counts {
	if c := m.find(rule{domain, descriptor}, false); c != nil {
		return c
	}
	return m.find(rule{}, false)
}

// ofValues returns the counts of a rule with values of a request, or without them if there are too many.
func (m *Metrics) ofValues(domain, descriptor, configured string) *Counts {
	if c := m.ofValuesOrNil(domain, descriptor); c != nil {
		return c
	}
	return m.of(domain, configured)
}

// ofRequest returns the counts of a limit that a request brings.
func (m *Metrics) ofRequest(domain string, d *rlspb.RateLimitDescriptor) *Counts {
	var path strings.Builder
	for i, e := range d.Entries {
		if i > 0 {
			path.WriteByte('.')
		}
		path.WriteString(e.GetKey())
		if e.GetValue() != "" {
			path.WriteString("_" + e.GetValue())
		}
	}
	if c := m.ofValuesOrNil(domain, path.String()); c != nil {
		return c
	}
	return m.find(rule{}, false)
}

// ofValuesOrNil makes labels of what requests say: those must be UTF-8, or no metric at all could be read.
func (m *Metrics) ofValuesOrNil(domain, descriptor string) *Counts {
	domain, descriptor = strings.ToValidUTF8(domain, replacement), strings.ToValidUTF8(descriptor, replacement)
	if len(domain)+len(descriptor) > maxLabelBytes {
		return nil
	}
	return m.find(rule{domain, descriptor}, true)
}

// find returns the counts of a rule, or nil if there is no room for it. That for the rest always has room.
func (m *Metrics) find(r rule, values bool) *Counts {
	m.mu.RLock()
	c := m.counts[r]
	m.mu.RUnlock()
	if c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.counts[r]; c != nil {
		return c
	}
	if r != (rule{}) && (len(m.counts) >= maxRules || values && m.values >= maxValues) {
		return nil
	}
	if values {
		m.values++
	}
	c = &Counts{}
	m.counts[rule{strings.Clone(r.domain), strings.Clone(r.descriptor)}] = c
	return c
}
