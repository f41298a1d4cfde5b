package rls

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/wire/peer"
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
	r := rate{count: o.RequestsPerUnit, unit: overrideUnit(o.Unit), algorithm: namedlimit.Quota}
	if r.unit == "" {
		return r, errUnit
	}
	r.periodSec = envoyconfig.UnitSec(r.unit)
	if units := int64(o.UnitMultiplier.GetValue()); units > 1 {
		const most = 1 << 32 // seconds, less than the 146 years of a window
		if units > most/r.periodSec {
			return r, errLong
		}
		r.periodSec, r.algorithm = r.periodSec*units, namedlimit.FixedWindow
	}
	return r, nil
}

func overrideUnit(u rlspb.RateLimitUnit) string {
	switch u {
	case rlspb.RateLimitUnit_SECOND:
		return "second"
	case rlspb.RateLimitUnit_MINUTE:
		return "minute"
	case rlspb.RateLimitUnit_HOUR:
		return "hour"
	case rlspb.RateLimitUnit_DAY:
		return "day"
	case rlspb.RateLimitUnit_MONTH:
		return "month"
	case rlspb.RateLimitUnit_YEAR:
		return "year"
	case rlspb.RateLimitUnit_UNKNOWN:
	}
	return ""
}

// message returns the rate for a response.
func (r *rate) message() *rlspb.RateLimitResponse_RateLimit {
	m := &rlspb.RateLimitResponse_RateLimit{RequestsPerUnit: r.count, Name: r.name}
	switch r.unit {
	case "second":
		m.Unit = rlspb.RateLimitResponse_RateLimit_SECOND
	case "minute":
		m.Unit = rlspb.RateLimitResponse_RateLimit_MINUTE
	case "hour":
		m.Unit = rlspb.RateLimitResponse_RateLimit_HOUR
	case "day":
		m.Unit = rlspb.RateLimitResponse_RateLimit_DAY
	case "week":
		m.Unit = rlspb.RateLimitResponse_RateLimit_WEEK
	case "month":
		m.Unit = rlspb.RateLimitResponse_RateLimit_MONTH
	case "year":
		m.Unit = rlspb.RateLimitResponse_RateLimit_YEAR
	}
	return m
}

// words builds calls in one buffer.
type words struct {
	buf  []byte
	args [][]byte
}

func (w *words) end(from int) { w.args = append(w.args, w.buf[from:len(w.buf):len(w.buf)]) }

func (w *words) word(s string) {
	from := len(w.buf)
	w.buf = append(w.buf, s...)
	w.end(from)
}

func (w *words) number(n int64) {
	from := len(w.buf)
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.end(from)
}

// call returns the call for hits. Denied ones count in a quota, as there, unless all calls are together.
func (w *words) call(r *rate, domain string, d *rlspb.RateLimitDescriptor, m *envoyconfig.Match, hits int64, together bool) peer.Call {
	from := len(w.args)
	switch r.algorithm {
	case namedlimit.Funnel, namedlimit.TokenBucket: // the two are one, and this one is free of --burst-is-capacity
		w.word("CL.TOKENBUCKET")
		w.key(r, domain, d, m)
		w.number(int64(r.count))
		w.number(int64(r.count))
		w.number(r.periodSec)
		w.number(hits)
	case namedlimit.FixedWindow:
		w.window("CL.FIXEDWINDOW", r, domain, d, m, hits)
	case namedlimit.SlidingWindow:
		w.window("CL.SLIDINGWINDOW", r, domain, d, m, hits)
	case namedlimit.ApproximateWindow:
		w.window("CL.SLIDINGWINDOW", r, domain, d, m, hits)
		w.word("APPROX")
	default:
		w.word("CL.QUOTA")
		w.key(r, domain, d, m)
		w.number(int64(r.count))
		w.word(r.unit)
		w.number(hits)
		w.word("EPOCH")
		if !together {
			w.word("COUNTDENIED")
		}
	}
	return w.args[from:len(w.args):len(w.args)]
}

func (w *words) window(command string, r *rate, domain string, d *rlspb.RateLimitDescriptor, m *envoyconfig.Match, hits int64) {
	w.word(command)
	w.key(r, domain, d, m)
	w.number(int64(r.count))
	w.number(r.periodSec)
	w.number(hits)
}

// maxKeyBytes is the most of a key before the rest is hashed: an error for a long header would be a way
// around the limit, as Envoy lets requests pass when the service fails.
const maxKeyBytes = 512

// key adds the key of a descriptor: rls:, the unit of a quota or the algorithm and the seconds of another
// limit, and the domain, keys and values, each behind its length. So no two lists of entries have the same
// key, and neither do limits whose states differ in kind.
//
//	rls:minute:2:rl3:foo4:bar1
//	rls:funnel-60:2:rl3:foo4:bar1
//	rls:minute:sha256:HEX of what would follow "rls:minute:", if it is long
func (w *words) key(r *rate, domain string, d *rlspb.RateLimitDescriptor, m *envoyconfig.Match) {
	from := len(w.buf)
	w.buf = append(w.buf, "rls:"...)
	if r.algorithm == namedlimit.Quota {
		w.buf = append(w.buf, r.unit...)
	} else {
		w.buf = append(append(w.buf, r.algorithm.String()...), '-')
		w.buf = strconv.AppendInt(w.buf, r.periodSec, 10)
	}
	w.buf = append(w.buf, ':')
	parts := len(w.buf)
	w.part(domain)
	for i, e := range d.Entries {
		w.part(e.GetKey())
		w.part(m.Value(i, e.GetValue()))
	}
	if len(w.buf)-parts > maxKeyBytes {
		sum := sha256.Sum256(w.buf[parts:])
		w.buf = hex.AppendEncode(append(w.buf[:parts], "sha256:"...), sum[:])
	}
	w.end(from)
}

func (w *words) part(s string) {
	w.buf = append(strconv.AppendInt(w.buf, int64(len(s)), 10), ':')
	w.buf = append(w.buf, s...)
}

// hitsOf returns the units of a descriptor: its own, of which 0 only looks, or the request's.
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
