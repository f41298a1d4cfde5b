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

// envoy is the door of Envoy's service. Its limits are not named ones: the model has their keys by itself.
type envoy struct {
	rules  atomic.Pointer[envoyconfig.Rules]
	client *grpc.ClientConn

	rates map[string]rate // by descriptor, in both domains
	keys  map[string]*entry
}

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
	e := &envoy{keys: map[string]*entry{}}
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
	e.rates = map[string]rate{}
	var descriptors strings.Builder
	for _, algorithm := range algorithms {
		unit := one(r.Rand, []string{"minute", "hour", "day"})
		of := rate{rule{algorithm: algorithm, capacity: 1 + r.Int64N(10), period: envoyUnits[unit], every: "epoch"}, unit, r.often(20)}
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
	key  string // of the state
	hits int64
}

// request decides by one rate. Denied hits count in a window of the calendar.
func (p *part) request(s *entry, hits, nowNs int64, alone bool) (state *entry, d row) {
	s = p.open(s, nowNs)
	d, changed := p.decide(s, call{units: hits}, nowNs, milliseconds)
	if d.limited && p.algorithm == aQuota && alone && hits > 0 {
		p.add(s, nowNs, hits)
		d.remaining, changed = 0, true
	}
	if changed {
		p.settle(s, nowNs)
		s.by = p.rule
	}
	s.intervalNs = 0 // funnels without a name keep none
	return s, d
}

// decided returns what the descriptors of a request get.
func (e *envoy) decided(parts []part, all bool, nowNs int64) (rows []row) {
	rows, alone := make([]row, len(parts)), func(p *part) bool { return !all || p.shadow }
	limited := false
	for i := range parts {
		if p := &parts[i]; !alone(p) {
			_, rows[i] = p.request(e.keys[p.key], p.hits, nowNs, false)
			limited = limited || rows[i].limited
		}
	}
	for i := range parts {
		p := &parts[i]
		hits := p.hits
		if !alone(p) && limited && !rows[i].limited {
			hits = 0
		}
		e.keys[p.key], rows[i] = p.request(e.keys[p.key], hits, nowNs, alone(p))
	}
	return rows
}

// envoys asks Envoy's service.
func (r *run) envoys(e *envoy) {
	if e.rates == nil || r.often(5) {
		r.configures(e)
	}
	domain := one(r.Rand, []string{eachDomain, allDomain})
	q := &rlspb.RateLimitRequest{Domain: domain}
	var parts []part
	hits := r.units()
	if domain == allDomain {
		hits = max(0, hits)
	}
	for _, i := range r.Perm(len(algorithms))[:1+r.IntN(3)] {
		of, value := e.rates[algorithms[i]], one(r.Rand, keys)
		d := &rlspb.RateLimitDescriptor{Entries: []*rlspb.RateLimitDescriptor_Entry{{Key: of.algorithm, Value: value}}}
		d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(uint64(max(hits, -hits))), hits < 0
		q.Descriptors = append(q.Descriptors, d)
		parts = append(parts, part{of, strings.Join([]string{domain, of.algorithm, of.unit, value}, " "), hits})
		r.table.count(r.envoyFeatures(e, &parts[len(parts)-1]), "Envoy", r.also)
	}
	wanted := e.decided(parts, domain == allDomain, r.now())
	ctx, cancel := patience.Context(r.t.Context())
	defer cancel()
	got := &rlspb.RateLimitResponse{}
	err := e.client.Invoke(ctx, "/"+rls.ServiceName+"/ShouldRateLimit", q, got)
	if err != nil {
		r.fail("%v: %v", q, err)
	}
	for i, d := range wanted {
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

func (r *run) envoyFeatures(e *envoy, p *part) (all []string) {
	all = append(all, p.algorithm)
	s := e.keys[p.key]
	other := s != nil && s.untilNs > r.now() && s.by != p.rule
	for name, is := range map[string]bool{"changed numbers": other, "reload": other, "shadow": p.shadow, "look": p.hits == 0, "refund": p.hits < 0} {
		if is {
			all = append(all, name)
		}
	}
	return all
}
