package rls

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"cellserver/internal/decide"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// rate is a number of requests in a unit of time, with the way to count them.
type rate struct {
	count     uint32
	unit      string
	periodSec int64
	algorithm namedlimit.Algorithm
	name      string
}

func rateOf(r *envoyconfig.Rate) rate {
	return rate{r.Count, r.Unit, envoyconfig.UnitSec(r.Unit), r.Algorithm, r.Name}
}

// overrideOf returns the rate that a request brings. Several units together are a fixed window, as a quota
// has one.
func overrideOf(o *rlspb.RateLimitDescriptor_RateLimitOverride) (rate, error) {
	if o.Unit < rlspb.RateLimitUnit_SECOND || o.Unit > rlspb.RateLimitUnit_WEEK {
		return rate{}, errUnit
	}
	unit := strings.ToLower(o.Unit.String())
	r := rate{count: o.RequestsPerUnit, unit: unit, periodSec: envoyconfig.UnitSec(unit), algorithm: namedlimit.Quota}
	if units := int64(o.UnitMultiplier.GetValue()); units > 1 {
		const most = 1 << 32 // seconds, less than the 146 years of a window
		if units > most/r.periodSec {
			return r, errLong
		}
		r.periodSec, r.algorithm = r.periodSec*units, namedlimit.FixedWindow
	}
	return r, nil
}

// message returns the rate for a response.
func (r *rate) message() *rlspb.RateLimitResponse_RateLimit {
	unit := rlspb.RateLimitUnit(rlspb.RateLimitUnit_value[strings.ToUpper(r.unit)])
	return &rlspb.RateLimitResponse_RateLimit{RequestsPerUnit: r.count, Unit: unit, Name: r.name}
}

// request returns the request for hits. Denied ones count in a quota, as there, unless all are together.
func (s *Service) request(r *rate, key []byte, hits int64, together bool) (q decide.Request, err error) {
	q = decide.Request{Key: key, Quantity: hits}
	count := int64(max(r.count, 1)) // see limitZero
	window := limiter.Spec{Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{count, r.periodSec}}
	switch r.algorithm {
	case namedlimit.Funnel, namedlimit.TokenBucket: // the two are one, and this one is free of --burst-is-capacity
		q.Command = "CL.TOKENBUCKET"
		q.Spec = limiter.Spec{Unit: funnel.Seconds, Reading: funnel.Capacity, Numbers: limiter.Numbers{count, count, r.periodSec}}
	case namedlimit.FixedWindow:
		q.Command, q.Spec, q.Spec.Kind = "CL.FIXEDWINDOW", window, limiter.FixedWindow
	case namedlimit.SlidingWindow:
		q.Command, q.Spec, q.Spec.Kind = "CL.SLIDINGWINDOW", window, limiter.SlidingWindow
	case namedlimit.ApproximateWindow:
		q.Command, q.Spec, q.Spec.Kind = "CL.SLIDINGWINDOW", window, limiter.ApproxWindow
	default:
		q.Command, q.Spec = "CL.QUOTA", limiter.Spec{Kind: limiter.Quota, Unit: funnel.WholeSeconds, Numbers: limiter.Numbers{count}}
		every, _ := calendar.EveryOf([]byte(r.unit))
		q.Spec.Calendar, err = s.config.Calendars.Find(every, nil, 0, true)
		if !together {
			q.Spec.Flags = limiter.CountDenied
		}
	}
	return q, err
}

// maxKeyBytes is the most of a key before the rest is hashed: an error for a long header would be a way
// around the limit, as Envoy lets requests pass when the service fails.
const maxKeyBytes = 512

// appendKey appends the key of a descriptor: rls:, the unit of a quota or the algorithm and the seconds of
// another limit, and the domain, keys and values, each behind its length. So no two lists of entries have the
// same key, and neither do limits whose states differ in kind.
//
//	rls:minute:2:rl3:foo4:bar1
//	rls:funnel-60:2:rl3:foo4:bar1
//	rls:minute:sha256:HEX of what would follow "rls:minute:", if it is long
func appendKey(b []byte, r *rate, domain string, d *rlspb.RateLimitDescriptor, m *envoyconfig.Match) []byte {
	b = append(b, "rls:"...)
	if r.algorithm == namedlimit.Quota {
		b = append(b, r.unit...)
	} else {
		b = append(append(b, r.algorithm.String()...), '-')
		b = strconv.AppendInt(b, r.periodSec, 10)
	}
	b = append(b, ':')
	parts := len(b)
	b = appendPart(b, domain)
	for i, e := range d.Entries {
		b = appendPart(appendPart(b, e.GetKey()), m.Value(i, e.GetValue()))
	}
	if len(b)-parts > maxKeyBytes {
		sum := sha256.Sum256(b[parts:])
		b = hex.AppendEncode(append(b[:parts], "sha256:"...), sum[:])
	}
	return b
}

func appendPart(b []byte, s string) []byte {
	b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
	return append(b, s...)
}

// hitsOf returns the units of a descriptor: its own, where 0 only looks, or the request's.
func hitsOf(r *rlspb.RateLimitRequest, d *rlspb.RateLimitDescriptor) int64 {
	hits := max(1, int64(r.HitsAddend))
	if d.HitsAddend != nil {
		hits = int64(min(d.HitsAddend.Value, math.MaxInt64))
	}
	if d.IsNegativeHits {
		return -hits
	}
	return hits
}
