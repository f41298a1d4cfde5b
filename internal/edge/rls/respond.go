package rls

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/edge/rls/rlspb"
)

// respond returns the response of a decided plan, and counts it.
func (s *Service) respond(p *plan, nowNs int64) *rlspb.RateLimitResponse {
	r := &rlspb.RateLimitResponse{
		OverallCode: rlspb.RateLimitResponse_OK,
		Statuses:    make([]*rlspb.RateLimitResponse_DescriptorStatus, len(p.applied)),
	}
	overLimit, quotas, overQuota := false, 0, 0
	for i := range p.applied {
		a := &p.applied[i]
		status := a.status(nowNs)
		r.Statuses[i] = status
		a.count(!p.limited || a.what != askedTogether, s.config.NearRatio)
		over := status.Code == rlspb.RateLimitResponse_OVER_LIMIT
		switch {
		case a.quota && a.what != unlimited:
			quotas++
			if over {
				overQuota++
			}
		case over:
			overLimit = true
		}
	}
	if overLimit || quotas > 0 && overQuota == quotas {
		r.OverallCode = rlspb.RateLimitResponse_OVER_LIMIT
	}
	if r.OverallCode == rlspb.RateLimitResponse_OVER_LIMIT && s.config.Shadow {
		r.OverallCode = rlspb.RateLimitResponse_OK
		s.Metrics.globalShadow.Add(1)
	}
	s.describe(p, r)
	return r
}

// describe adds what is told besides the statuses.
func (s *Service) describe(p *plan, r *rlspb.RateLimitResponse) {
	if !s.config.Headers && !s.config.Metadata {
		return
	}
	near := p.near(s.config.NearRatio)
	if s.config.Headers {
		if r.ResponseHeadersToAdd = p.headers(r.Statuses, s.config.HeaderNames); len(near) > 0 {
			r.ResponseHeadersToAdd = append(r.ResponseHeadersToAdd, nearHeader(near))
		}
	}
	if s.config.Metadata {
		if r.DynamicMetadata = p.metadata(r.Statuses); len(near) > 0 {
			r.DynamicMetadata.Fields["near"] = nearList(near)
		}
	}
}

func (a *applied) status(nowNs int64) *rlspb.RateLimitResponse_DescriptorStatus {
	status := &rlspb.RateLimitResponse_DescriptorStatus{Code: rlspb.RateLimitResponse_OK}
	switch a.what {
	case nothing:
		return status
	case unlimited:
		status.LimitRemaining = math.MaxUint32
		return status
	case zero, asked, askedTogether:
	}
	if a.result.Limited && !a.isShadow() {
		status.Code = rlspb.RateLimitResponse_OVER_LIMIT
	}
	status.CurrentLimit = a.rate.message()
	if !a.result.Limited {
		status.LimitRemaining = uint32(min(max(a.result.Remaining, 0), math.MaxUint32))
	}
	status.DurationUntilReset = &durationpb.Duration{Seconds: a.resetSec(nowNs)}
	return status
}

// resetSec returns the seconds to the end of a quota's window, and else those until the same call is allowed,
// or until the limiter is empty. Seconds are whole, as clients read no parts of one, and up.
func (a *applied) resetSec(nowNs int64) int64 {
	if a.rate.algorithm == namedlimit.Quota {
		const ns = 1_000_000_000
		return a.rate.periodSec - nowNs/ns%a.rate.periodSec
	}
	ms := a.result.ResetAfter
	if a.result.Limited && a.result.RetryAfter >= 0 {
		ms = a.result.RetryAfter
	}
	const msOfSec = 1000
	return ms/msOfSec + min(1, ms%msOfSec)
}

// headers describes the descriptor that denies, or else the one with the least left.
func (p *plan) headers(statuses []*rlspb.RateLimitResponse_DescriptorStatus, names [3]string) []*rlspb.HeaderValue {
	var least *rlspb.RateLimitResponse_DescriptorStatus
	for i, status := range statuses {
		if status.CurrentLimit == nil {
			continue
		}
		denies := status.Code == rlspb.RateLimitResponse_OVER_LIMIT && !p.applied[i].quota
		if denies || least == nil || status.LimitRemaining < least.LimitRemaining {
			least = status
		}
	}
	if least == nil {
		return nil
	}
	values := [3]int64{int64(least.CurrentLimit.RequestsPerUnit), int64(least.LimitRemaining), least.DurationUntilReset.Seconds}
	all := make([]*rlspb.HeaderValue, 0, len(names)+1)
	for i, name := range names {
		all = append(all, &rlspb.HeaderValue{Key: name, Value: strconv.FormatInt(values[i], 10)})
	}
	return all
}
