package squares

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
	"cellserver/internal/test/patience"
	"cellserver/internal/wire/peer"
)

// envoy is the door of Envoy's service. A key of its limits has one state in the model.
type envoy struct {
	rules  atomic.Pointer[envoyconfig.Rules]
	client *grpc.ClientConn

	rates    map[string]rate // by descriptor, in both domains
	reserved []reservation
}

const (
	envoyName  = "rls" // before all keys, as a limit's name is
	envoyState = ""
)

// rate is the limit of a descriptor.
type rate struct {
	rule
	unit   string
	shadow bool
}

const (
	eachDomain = "each" // whose descriptors are charged each by itself
	allDomain  = "all"  // whose descriptors are charged all or none
)

var envoyUnits = map[string]int64{"minute": 60, "hour": 3600, "day": 86_400}

func (h *house) openEnvoy(t *testing.T, of *server.Server, log *slog.Logger) *envoy {
	t.Helper()
	e := &envoy{}
	d := door.NewGRPC(door.Config{
		Name: peer.GRPC, Server: of, Users: h.Config.Users, Tokens: &door.Tokens{}, Logins: &clients.Logins{}, Now: h.Clock.Now, Log: log,
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
		Admit:      func(peer.Peer) string { return "" },
	}, rls.New(rls.Config{
		Rules: e.rules.Load, Calendars: h.Config.NamedLimits.Calendars(), Ready: func() error { return nil }, Loading: func() bool { return false },
	}).Procedures())
	l := listen(t)
	go func() { _ = d.Serve(l) }()
	client, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	e.client = client
	t.Cleanup(func() {
		_ = client.Close()
		ctx, cancel := patience.Context(context.Background())
		defer cancel()
		d.Shutdown(ctx)
	})
	return e
}

// configures draws the rates of Envoy's files.
func (r *run) configures(e *envoy) {
	was := e.rates
	e.rates = map[string]rate{}
	var descriptors strings.Builder
	for _, algorithm := range algorithms {
		unit := one(r.Rand, []string{"minute", "minute", "hour", "day"})
		if before, is := was[algorithm]; is && r.often(80) {
			unit = before.unit
		}
		of := rate{rule{algorithm: algorithm, capacity: 1 + r.Int64N(one(r.Rand, []int64{10, 100})), period: envoyUnits[unit], every: "epoch"}, unit, r.often(20)}
		of.count = of.capacity
		e.rates[algorithm] = of
		fmt.Fprintf(&descriptors, "  - {key: %s, shadow_mode: %t, rate_limit: {unit: %s, requests_per_unit: %d, algorithm: %s}}\n",
			algorithm, of.shadow, unit, of.capacity, algorithm)
	}
	var files []envoyconfig.File
	for domain, all := range map[string]bool{eachDomain: false, allDomain: true} {
		text := fmt.Sprintf("domain: %s\nall_or_nothing: %t\ndescriptors:\n%s", domain, all, descriptors.String())
		files = append(files, envoyconfig.File{Path: domain + ".yaml", Text: []byte(text)})
	}
	r.note("envoy:\n%s", descriptors.String())
	rules, err := envoyconfig.RulesOf(files)
	if err != nil {
		r.fail("%v", err)
	}
	e.rules.Store(rules)
}

// part is a descriptor of a request.
type part struct {
	rate
	pair
	domain, value string
	hits          int64
}

// part returns a descriptor as the rates are now.
func (e *envoy) part(domain, algorithm, value string, hits int64) part {
	of := e.rates[algorithm]
	kind := fmt.Sprintf("%s-%d", algorithm, of.period)
	if algorithm == aQuota {
		kind = of.unit
	}
	key := fmt.Sprintf("%s:%d:%s%d:%s%d:%s", kind, len(domain), domain, len(algorithm), algorithm, len(value), value)
	return part{of, pair{envoyName, key}, domain, value, hits}
}

// requested decides by one rate, without effect. Denied hits count in a window of the calendar.
func (m *model) requested(p *part, c call, nowNs int64, alone bool) (s *entry, d row) {
	s = p.open(m.keys[p.pair][envoyState], nowNs)
	if s.era == 0 {
		m.made++
		s.era = m.made
	}
	d, changed := p.decide(s, c, nowNs, milliseconds)
	if d.limited && p.algorithm == aQuota && alone && c.units > 0 {
		p.add(s, nowNs, c.units)
		d.remaining, changed = 0, true
	}
	if changed {
		p.settle(s, nowNs)
		s.by = p.rule
	}
	s.intervalNs = 0 // funnels without a name keep none
	return s, d
}

// requests is requested with its effect.
func (m *model) requests(p *part, c call, nowNs int64, alone bool) (s *entry, d row) {
	s, d = m.requested(p, c, nowNs, alone)
	m.keys[p.pair] = map[string]*entry{envoyState: s}
	return s, d
}

// decided returns what the descriptors of a request get.
func (m *model) decided(parts []part, all bool, nowNs int64) (rows []row) {
	rows, alone := make([]row, len(parts)), func(p *part) bool { return !all || p.shadow }
	limited := false
	for i := range parts {
		if p := &parts[i]; !alone(p) {
			_, rows[i] = m.requested(p, call{units: p.hits}, nowNs, false)
			limited = limited || rows[i].limited
		}
	}
	for i := range parts {
		p := &parts[i]
		hits := p.hits
		if !alone(p) && limited && !rows[i].limited {
			hits = 0
		}
		_, rows[i] = m.requests(p, call{units: hits}, nowNs, alone(p))
	}
	return rows
}

// parts draws descriptors of a domain: one where keys are evicted, as the first may evict the second's.
func (r *run) parts(e *envoy, domain string, hits int64) (parts []part) {
	most := 3
	if r.before != nil {
		most = 1
	}
	for _, i := range r.Perm(len(algorithms))[:1+r.IntN(most)] {
		parts = append(parts, e.part(domain, algorithms[i], one(r.Rand, keys[:2]), hits))
	}
	return parts
}

// descriptors are parts in a request.
func descriptors(parts []part) (all []*rlspb.RateLimitDescriptor) {
	for i := range parts {
		p := &parts[i]
		all = append(all, &rlspb.RateLimitDescriptor{
			Entries:    []*rlspb.RateLimitDescriptor_Entry{{Key: p.algorithm, Value: p.value}},
			HitsAddend: wrapperspb.UInt64(uint64(max(p.hits, -p.hits))), IsNegativeHits: p.hits < 0,
		})
	}
	return all
}

// invoke asks a procedure about parts.
func (r *run) invoke(e *envoy, procedure string, parts []part, in, out any) error {
	for i := range parts {
		r.table.count(r.envoyFeatures(procedure, &parts[i]), "Envoy", r.also)
	}
	ctx, cancel := patience.Context(r.t.Context())
	defer cancel()
	return e.client.Invoke(ctx, procedure, in, out)
}

// envoys asks Envoy's service, and Kuadrant's about the same keys, some times in a short while.
func (r *run) envoys(e *envoy) {
	for range 1 + r.IntN(8) {
		if e.rates == nil || r.often(6) {
			r.configures(e)
		}
		if r.often(30) {
			ns := 1 + r.Int64N(one(r.Rand, []int64{secNs, 20 * secNs, 70 * secNs}))
			r.note("%d ns pass", ns)
			r.pass(ns)
		}
		if r.before != nil {
			r.before()
		}
		if r.tidy(r.now()); r.often(60) {
			r.kuadrants(e)
		} else {
			r.asksEnvoy(e)
		}
	}
}

func (r *run) asksEnvoy(e *envoy) {
	domain, hits := one(r.Rand, []string{eachDomain, allDomain}), r.units()
	if domain == allDomain {
		hits = max(0, hits)
	}
	parts := r.parts(e, domain, hits)
	q, got := &rlspb.RateLimitRequest{Domain: domain, Descriptors: descriptors(parts)}, &rlspb.RateLimitResponse{}
	if err := r.invoke(e, "/"+rls.ServiceName+"/ShouldRateLimit", parts, q, got); err != nil {
		r.fail("%v: %v", q, err)
	}
	for i, d := range r.decided(parts, domain == allDomain, r.now()) {
		limited, left := d.limited && !parts[i].shadow, d.remaining
		if d.limited {
			left = 0
		}
		resets := d.resets
		if d.limited && d.retry >= 0 {
			resets = d.retry
		}
		resets = (resets + 999) / 1000
		if parts[i].algorithm == aQuota {
			resets = parts[i].period - r.now()/secNs%parts[i].period
		}
		r.note("envoy %s %s %d -> %t %d %d", domain, parts[i].key, parts[i].hits, limited, left, resets)
		s := got.Statuses[i]
		if is := s.Code == rlspb.RateLimitResponse_OVER_LIMIT; is != limited || int64(s.LimitRemaining) != left || s.DurationUntilReset.GetSeconds() != resets {
			r.fail("envoy: %d of %v: got %v", i, q, s)
		}
	}
}

func (r *run) envoyFeatures(procedure string, p *part) (all []string) {
	all = append(all, p.algorithm)
	s := r.keys[p.pair][envoyState]
	other := s != nil && s.untilNs > r.now() && s.by != p.rule
	has := map[string]bool{
		"changed numbers": other, "reload": other, "shadow": p.shadow, "look": p.hits == 0, "refund": p.hits < 0,
		"hold": procedure == reserveProcedure, "commit": procedure == commitProcedure,
	}
	for _, h := range r.holds[p.pair] {
		has["held"], has["overdue"] = has["held"] || !h.overdue, has["overdue"] || h.overdue
	}
	for name, is := range has {
		if is {
			all = append(all, name)
		}
	}
	return all
}
