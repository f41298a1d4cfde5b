package squares

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"cellserver/internal/edge/rls"
	"cellserver/internal/edge/rls/rlspb"
)

// Paths of Kuadrant's procedures:
const (
	checkProcedure   = "/" + rls.KuadrantServiceName + "/CheckRateLimit"
	reportProcedure  = "/" + rls.KuadrantServiceName + "/Report"
	reserveProcedure = "/" + rls.KuadrantServiceName + "/Reserve"
	commitProcedure  = "/" + rls.KuadrantServiceName + "/Commit"
)

// reservation is what a Reserve has answered.
type reservation struct {
	id    string
	parts []part
}

// kuadrants asks Kuadrant's service.
func (r *run) kuadrants(e *envoy) {
	domain := one(r.Rand, []string{eachDomain, allDomain})
	switch r.IntN(8) {
	case 0:
		r.kuadrantChecks(e, domain)
	case 1:
		r.kuadrantReports(e, domain)
	case 2, 3, 4:
		r.kuadrantReserves(e, domain)
	default:
		r.kuadrantCommits(e, domain)
	}
}

func (r *run) kuadrantChecks(e *envoy, domain string) {
	parts, code := r.parts(e, domain, r.units()), rlspb.RateLimitResponse_OK
	for i := range parts {
		p := &parts[i]
		if _, d := r.requested(p, call{}, r.now(), false); d.remaining < 1 && !p.shadow {
			code = rlspb.RateLimitResponse_OVER_LIMIT
		}
	}
	r.kuadrant(e, checkProcedure, domain, parts, code)
}

func (r *run) kuadrantReports(e *envoy, domain string) {
	parts := r.parts(e, domain, r.units())
	for i := range parts {
		r.charges(&parts[i], parts[i].hits)
	}
	r.kuadrant(e, reportProcedure, domain, parts, rlspb.RateLimitResponse_OK)
}

// kuadrant asks a procedure that answers with a code.
func (r *run) kuadrant(e *envoy, procedure, domain string, parts []part, want rlspb.RateLimitResponse_Code) {
	q, got := &rlspb.RateLimitRequest{Domain: domain, Descriptors: descriptors(parts)}, &rlspb.RateLimitResponse{}
	r.note("%s %v -> %s", procedure, q, want)
	if err := r.invoke(e, procedure, parts, q, got); err != nil || got.OverallCode != want || len(got.Statuses) > 0 {
		r.fail("%s %v: %v, %v, want %s", procedure, q, got, err, want)
	}
}

// charges charges units without a check, of an exact window as many as it has left.
func (r *run) charges(p *part, units int64) {
	c := call{units: units, debit: units > 0}
	if p.algorithm == aSliding && c.debit {
		_, d := r.requested(p, call{}, r.now(), false)
		c.units, c.debit = min(units, d.remaining), false
	}
	r.requests(p, c, r.now(), false)
}

func (r *run) kuadrantReserves(e *envoy, domain string) {
	parts, amount, ttlNs := r.parts(e, domain, 1), max(0, r.units()), int64(time.Minute)
	q := &rlspb.ReserveRequest{Domain: domain, Descriptors: descriptors(parts), Amount: uint64(amount)}
	if r.often(80) {
		said := one(r.Rand, []int64{-1, 0, 999_999, 1_000_000, secNs, 20 * secNs, 59 * secNs, 59 * secNs, 2 * 3600 * secNs})
		if q.Ttl = durationpb.New(time.Duration(said)); said >= 0 {
			ttlNs = min(ttlNs, said-said%1_000_000)
		}
	}
	isExact := slices.ContainsFunc(parts, func(p part) bool { return p.algorithm == aSliding })
	got := &rlspb.ReserveResponse{}
	err := r.invoke(e, reserveProcedure, parts, q, got)
	r.note("%s %v -> %v, %v", reserveProcedure, q, got, err)
	if isExact {
		if status.Code(err) != codes.InvalidArgument {
			r.fail("an exact window can hold nothing")
		}
		return
	}
	allowed := r.holdsAll(parts, got.ReservationId, amount, ttlNs)
	if is := got.Code == rlspb.RateLimitResponse_OK; err != nil || is != allowed || is != (len(got.ReservationId) == 32) {
		r.fail("it is allowed %t", allowed)
	}
	if allowed {
		e.reserved = append(e.reserved[max(0, len(e.reserved)-20):], reservation{got.ReservationId, parts})
	}
}

// holdsAll holds an amount of all parts or of none, at most half of the smallest limit.
func (r *run) holdsAll(parts []part, id string, amount, ttlNs int64) (allowed bool) {
	nowNs, units := r.now(), amount
	for i := range parts {
		p := &parts[i]
		if _, d := r.requested(p, call{units: amount}, nowNs, false); d.limited && !p.shadow {
			return false
		}
		units = min(units, p.capacity/2)
	}
	if units == 0 || ttlNs == 0 {
		return true
	}
	for i := range parts {
		p := &parts[i]
		r.made++
		h := &hold{number: r.made, id: id, units: units, endNs: nowNs + ttlNs}
		s, _ := r.requests(p, call{units: units, hold: h.number, debit: p.shadow}, nowNs, false)
		if !p.isFunnel() {
			h.endNs = min(h.endNs, s.untilNs)
		}
		h.shares = map[string]period{envoyState: {s.era, s.turns}}
		r.holds[p.pair] = append(r.holds[p.pair], h)
	}
	return true
}

func (r *run) kuadrantCommits(e *envoy, domain string) {
	of := reservation{one(r.Rand, []string{"", "unknown"}), r.parts(e, domain, 1)}
	if len(e.reserved) > 0 && r.often(90) {
		was := one(r.Rand, e.reserved)
		if of = (reservation{id: was.id}); len(was.parts) > 1 && r.often(10) {
			was.parts = was.parts[1:]
		}
		for _, p := range was.parts {
			of.parts = append(of.parts, e.part(p.domain, p.algorithm, p.value, 1))
		}
	}
	used, released := max(0, r.units()), false
	q, got := &rlspb.CommitRequest{
		Domain: of.parts[0].domain, Descriptors: descriptors(of.parts), ReservationId: of.id, ActualAmount: uint64(used),
	}, &rlspb.CommitResponse{}
	for i := range of.parts {
		p, beyond := &of.parts[i], used
		if h := r.found(p.pair, of.id); h != nil {
			released = released || !h.overdue
			beyond = r.settles(p.pair, h, used, r.now())
		}
		if beyond > 0 {
			r.charges(p, beyond)
		}
	}
	err := r.invoke(e, commitProcedure, of.parts, q, got)
	r.note("%s %v -> %t", commitProcedure, q, released)
	if err != nil || got.ReservationReleased != released {
		r.fail("committed %v, %v", got, err)
	}
}
