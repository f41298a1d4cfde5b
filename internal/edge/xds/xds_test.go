package xds_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds"
	"cellserver/internal/edge/xds/xdspb"
)

// request is what tests look at in a request.
type request struct{ version, nonce, refusal string }

func of(q *xdspb.DiscoveryRequest) request {
	return request{q.VersionInfo, q.ResponseNonce, q.GetErrorDetail().GetMessage()}
}

func (s *stream) want(t *testing.T, want request) {
	t.Helper()
	if got := of(s.next()); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func (c *client) wantLimits(t *testing.T, want map[string]uint32) {
	t.Helper()
	synctest.Wait()
	if got := c.limits(); !maps.Equal(got, want) {
		t.Errorf("limits are %v, want %v", got, want)
	}
}

// TestStateOfTheWorld sets limits, changes them, takes one domain away, and then all.
func TestStateOfTheWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		first := s.next()
		if of(first) != (request{}) || first.Node.Id != "node" || first.TypeUrl != xds.TypeURL || len(first.ResourceNames) > 0 {
			t.Errorf("the first request is %v", first)
		}
		if st := c.Status(); !st.Connected || st.Loaded || c.Rules() != nil {
			t.Errorf("before an answer: %+v", st)
		}
		for _, step := range []struct {
			version string
			domains []*configpb.RateLimitConfig
			want    map[string]uint32
		}{
			{"1", []*configpb.RateLimitConfig{domain("a", 1), domain("b", 2)}, map[string]uint32{"a": 1, "b": 2}},
			{"2", []*configpb.RateLimitConfig{domain("a", 10), domain("b", 2)}, map[string]uint32{"a": 10, "b": 2}},
			{"3", []*configpb.RateLimitConfig{domain("b", 2)}, map[string]uint32{"b": 2}},
			{"", nil, map[string]uint32{}},
			{"5", []*configpb.RateLimitConfig{domain("a", 1)}, map[string]uint32{"a": 1}},
		} {
			s.send(t, answer(t, step.version, step.domains...))
			s.want(t, request{step.version, "nonce-" + step.version, ""})
			c.wantLimits(t, step.want)
			<-c.First()
			if st := c.Status(); !st.Loaded || st.Version != step.version || st.Stale || st.Refusal != "" || !st.Since.Equal(time.Now()) {
				t.Errorf("after version %q: %+v", step.version, st)
			}
		}
		if st := c.Status(); st.Accepted != 5 || st.Rejected != 0 {
			t.Errorf("counts: %+v", st)
		}
	})
}

// bad is refused, with a text.
var bad = &configpb.RateLimitConfig{Name: "bad", Domain: "a", Descriptors: []*configpb.RateLimitDescriptor{
	{Key: "k", RateLimit: &configpb.RateLimitPolicy{RequestsPerUnit: 1}},
}}

const whyBad = `resource "bad", descriptor "k": unit must be second, minute, hour, day, week, month or year, got ""`

// TestRefusals: a refused answer leaves the rules as they were. The first refusal of a version is told at
// once, later ones after a pause, which doubles; another version's is told at once again.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		s.send(t, answer(t, "1", domain("a", 1)))
		s.want(t, request{"1", "nonce-1", ""})
		refused := 0
		refuse := func(version string, after ...time.Duration) {
			t.Helper()
			for _, want := range after {
				time.Sleep(time.Second) // the last answer is older than the pause between answers
				sent := time.Now()
				s.send(t, answer(t, version, bad))
				q := s.next()
				if (of(q) != request{"1", "nonce-" + version, whyBad}) || q.ErrorDetail.Code != int32(codes.InvalidArgument) {
					t.Errorf("got %v", q)
				}
				if took := time.Since(sent); took != want {
					t.Errorf("version %s: told after %s, want %s", version, took, want)
				}
				refused++
				if st := c.Status(); st.Rejected != uint64(refused) || st.Refusal != whyBad || st.Version != "1" {
					t.Errorf("%+v", st)
				}
			}
			c.wantLimits(t, map[string]uint32{"a": 1})
		}
		refuse("2", 0, time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 16*time.Second, 32*time.Second, time.Minute, time.Minute)
		refuse("3", 0, time.Second)
		s.send(t, answer(t, "4", domain("a", 4)))
		s.want(t, request{"4", "nonce-4", ""})
		c.wantLimits(t, map[string]uint32{"a": 4})
		if st := c.Status(); st.Refusal != "" || st.Rejected != uint64(refused) {
			t.Errorf("after a good version: %+v", st)
		}
	})
}

// TestCorrectionOfARefusedAnswer: one that comes while a refusal waits is taken at once, and the refusal is
// not told.
func TestCorrectionOfARefusedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		for range 2 {
			s.send(t, answer(t, "2", bad))
			time.Sleep(500 * time.Millisecond)
		}
		s.want(t, request{"", "nonce-2", whyBad})
		s.send(t, answer(t, "2", domain("a", 2)))
		s.want(t, request{"2", "nonce-2", ""})
		time.Sleep(time.Hour)
		if n := len(s.requests); n > 0 {
			t.Errorf("%d more requests", n)
		}
		c.wantLimits(t, map[string]uint32{"a": 2})
	})
}

// TestWhatIsRefused has the texts for the server.
func TestWhatIsRefused(t *testing.T) {
	const first = `resource "a-resource"`
	otherType := answer(t, "x", domain("a", 1))
	otherType.TypeUrl = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	noneOfAnother := &xdspb.DiscoveryResponse{VersionInfo: "x", Nonce: "nonce-x", TypeUrl: otherType.TypeUrl}
	otherResource := answer(t, "x", domain("a", 1), domain("b", 1))
	otherResource.Resources[1].TypeUrl = strings.Repeat("\x01", 1000)
	noMessage := answer(t, "x", domain("a", 1), domain("b", 1))
	noMessage.Resources[1].Value = []byte("\xff")
	noText := answer(t, "x", &configpb.RateLimitConfig{Domain: "a"})
	noText.Resources[0].Value = []byte("\x12\x01\xff")
	for _, tt := range []struct {
		answer *xdspb.DiscoveryResponse
		want   string
	}{
		{otherType, `the answer is of the type "type.googleapis.com/envoy.config.cluster.v3.Cluster", want ` + xds.TypeURL},
		{noneOfAnother, `the answer is of the type "type.googleapis.com/envoy.config.cluster.v3.Cluster", want ` + xds.TypeURL},
		{otherResource, `resource 1 is of the type "` + strings.Repeat(`\x01`, 128) + `", want ` + xds.TypeURL},
		{noMessage, "resource 1 cannot be decoded as " + xds.TypeURL},
		{noText, "resource 0 cannot be decoded as " + xds.TypeURL},
		{answer(t, "x", domain("a", 1), domain("a", 2)), `domain "a" is in ` + first + " already; "},
		{answer(t, "x", &configpb.RateLimitConfig{Name: "n"}), `resource "n": domain is missing`},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := serve(t, nil)
			c := run(t, server.configOf())
			s := <-server.streams
			s.next()
			s.send(t, tt.answer)
			if got := of(s.next()); !strings.Contains(got.refusal, tt.want) || got.nonce != "nonce-x" || got.version != "" {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
			if st := c.Status(); st.Loaded || st.Rejected != 1 {
				t.Errorf("%+v", st)
			}
			s.send(t, answer(t, "y", domain("a", 1))) // the stream goes on
			s.want(t, request{"y", "nonce-y", ""})
		})
	}
}

// TestEachStreamBeginsWithTheLastVersion, without the nonce of another stream.
func TestEachStreamBeginsWithTheLastVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		version := ""
		for _, next := range []string{"1", "2", "bad", "", "5"} {
			s := <-server.streams
			s.want(t, request{version, "", ""})
			if next == "bad" {
				s.send(t, answer(t, "bad", bad))
				s.want(t, request{version, "nonce-bad", whyBad})
			} else {
				s.send(t, answer(t, next))
				s.want(t, request{next, "nonce-" + next, ""})
				version = next
			}
			s.end <- status.Error(codes.Unavailable, "the server\nleaves")
			synctest.Wait()
			if st := c.Status(); st.Connected || st.Failure != "Unavailable: the server leaves" || st.Version != version {
				t.Errorf("%+v", st)
			}
		}
	})
}

// TestServerThatIsAway: tries come with pauses that double and have jitter. What was there stays in use.
func TestServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve(t, nil)
		c := run(t, server.configOf())
		s := <-server.streams
		s.next()
		s.send(t, answer(t, "1", domain("a", 1)))
		s.next()
		server.away(true)
		s.end <- nil
		time.Sleep(time.Hour)
		server.mu.Lock()
		tries := server.dials
		server.mu.Unlock()
		longest := time.Second
		for i := 1; i < len(tries); i++ {
			if pause := tries[i].Sub(tries[i-1]); pause < longest/2 || pause > longest {
				t.Errorf("the pause %d is %s, want %s to %s", i, pause, longest/2, longest)
			}
			longest = min(2*longest, time.Minute)
		}
		if n := len(tries); n < 60 || n > 130 {
			t.Errorf("%d tries in an hour", n)
		}
		if st := c.Status(); st.Connected || st.Stale || !strings.Contains(st.Failure, "connection refused") {
			t.Errorf("%+v", st)
		}
		c.wantLimits(t, map[string]uint32{"a": 1})
		server.away(false)
		s = <-server.streams
		s.want(t, request{"1", "", ""})
		synctest.Wait()
		if st := c.Status(); !st.Connected || st.Failure != "" {
			t.Errorf("%+v", st)
		}
	})
}

// TestPausesBeginAnew after a stream that was of use, but not after one that was not.
func TestPausesBeginAnew(t *testing.T) {
	for name, tt := range map[string]struct {
		do       func(t *testing.T, s *stream)
		isUseful bool
	}{
		"an answer that is taken":   {func(t *testing.T, s *stream) { s.send(t, answer(t, "1")); s.next() }, true},
		"an answer that is refused": {func(t *testing.T, s *stream) { s.send(t, answer(t, "1", bad)); s.next() }, false},
		"silence":                   {func(*testing.T, *stream) { time.Sleep(11 * time.Second) }, true},
		"nothing":                   {func(*testing.T, *stream) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := serve(t, nil)
				run(t, server.configOf())
				var pause time.Duration
				for range 8 {
					s := <-server.streams
					s.next()
					tt.do(t, s)
					ended := time.Now()
					s.end <- nil
					s = <-server.streams
					pause = time.Since(ended)
					s.end <- nil
				}
				if isFirst := pause <= 2*time.Second; isFirst != tt.isUseful {
					t.Errorf("the last pause is %s", pause)
				}
			})
		})
	}
}
