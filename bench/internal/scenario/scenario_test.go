package scenario

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellserver/bench/internal/control"
	"cellserver/bench/internal/load"
	"cellserver/bench/internal/peer"
	"cellserver/bench/internal/report"
	"cellserver/internal/test/processtest"
)

func TestSelect(t *testing.T) {
	if all, err := Select(nil); err != nil || len(all) != len(All()) {
		t.Errorf("%v: %d scenarios", err, len(all))
	}
	if some, err := Select([]string{"hot", Quick}); err != nil || len(some) != 2 || some[1].Name != Quick {
		t.Errorf("%v: %v", err, some)
	}
	if _, err := Select([]string{"cold"}); err == nil || !strings.Contains(err.Error(), "choose from pipelined, ") {
		t.Errorf("got %v", err)
	}
}

// prepared is built once, as it takes seconds.
var prepared struct {
	once sync.Once
	kit  *peer.Kit // closed by TestMain
	err  error
}

// TestMain also is the program of controls.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "control" {
		control.Main(os.Args[2])
	}
	code := m.Run()
	if prepared.kit != nil {
		prepared.kit.Close()
	}
	os.Exit(code)
}

// suite measures the real servers for a moment.
func suite(t *testing.T) *Suite {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	prepared.once.Do(func() {
		prepared.kit, prepared.err = peer.Prepare(context.Background(), peer.Source{Dir: "../../..", Control: []string{os.Args[0], "control"}})
	})
	kit, err := prepared.kit, prepared.err
	if err != nil {
		processtest.SkipWithout(t, err.Error())
	}
	return &Suite{
		Kit: kit, Rounds: 2, Window: 20 * time.Millisecond, Threads: 1,
		Progress: func(string) {}, Results: &report.Results{},
	}
}

// measured returns a suite that has run a scenario.
func measured(t *testing.T, name string) *Suite {
	t.Helper()
	s := suite(t)
	scenarios, err := Select([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), scenarios); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuick(t *testing.T) {
	s := measured(t, Quick)
	peers := 3
	if s.Kit.Missing[peer.Floor] != "" {
		peers--
	}
	if len(s.Results.Points) != 3*peers || len(s.Results.Goals) != 3 {
		t.Errorf("%d points, %d goals", len(s.Results.Points), len(s.Results.Goals))
	}
	for _, p := range s.Results.Points {
		if len(p.Rounds) != 2 || slices.ContainsFunc(p.Rounds, func(s report.Sample) bool {
			return s.Rate <= 0 || s.CPUNs <= 0 || s.P50Ns <= 0 || s.P99Ns < s.P50Ns || s.RSS <= 0
		}) {
			t.Errorf("%s, %d pipelined: %+v", p.Peer, p.Pipeline, p.Rounds)
		}
	}
	for _, g := range s.Results.Goals {
		if g.Scenario != Quick || g.Got.Median <= 0 || g.Why != "" {
			t.Errorf("got %+v", g)
		}
	}
}

func TestServerThatDiesIsNamed(t *testing.T) {
	s := suite(t)
	server, err := s.Kit.StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := s.lane("x", set, server, s.config(server, peer.Set()), load.Plan{Duration: time.Hour})
	time.AfterFunc(100*time.Millisecond, server.Stop)
	if err := s.interleave(t.Context(), []*lane{l}); err == nil || !strings.Contains(err.Error(), set) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptEndsTheServers(t *testing.T) {
	s := suite(t)
	s.Window = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Progress = func(string) { time.AfterFunc(500*time.Millisecond, cancel) } // once the servers are there
	scenarios, _ := Select([]string{Quick})
	if err := s.Run(ctx, scenarios); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestMissingPeerIsNoFailure(t *testing.T) {
	g := ratio("x", 1, &lane{point: &report.Point{}}, nil, report.CPU)
	if g.Outcome() != report.NotMeasured {
		t.Errorf("got %+v", g)
	}
}

// TestShort runs scenarios of few servers.
func TestShort(t *testing.T) {
	for name, want := range map[string]struct{ points, goals int }{"sync": {4, 2}, "churn": {9, 5}, "limits": {15, 4}, "doors": {19, 11}, "nginx": {4, 1}} {
		s := measured(t, name)
		if len(s.Results.Points) != want.points || len(s.Results.Goals) != want.goals {
			t.Errorf("%s: %d points, %d goals, want %+v", name, len(s.Results.Points), len(s.Results.Goals), want)
		}
	}
}

// TestControlsAnswerTheSame: as cellserver, but for digits.
func TestControlsAnswerTheSame(t *testing.T) {
	s := suite(t)
	var started servers
	t.Cleanup(started.stop)
	all, err := s.checkers(t.Context(), &started)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(name string) (header []string, bytes int) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+named(all, name)[0].server.Addr.String()+"/v1/check/api?key=u:1", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for field, values := range response.Header {
			bytes += len(values[0])
			header = append(header, field)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %v", name, response.Status, err)
		}
		slices.Sort(header)
		return header, bytes + len(body)
	}
	header, bytes := answer(get)
	for _, name := range []string{peer.EmptyHTTP, peer.EmptyFastHTTP} {
		if h, n := answer(name); !slices.Equal(h, header) || max(n, bytes)-min(n, bytes) > 16 {
			t.Errorf("%s: %d bytes, with %q; cellserver's are %d, with %q", name, n, h, bytes, header)
		}
	}
}

// TestRemote: a cluster, and redis_rate on it.
func TestRemote(t *testing.T) {
	s := suite(t)
	s.Rounds, s.Window = 1, 50*time.Millisecond
	scenarios, err := Select([]string{"remote"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), scenarios); err != nil {
		t.Fatal(err)
	}
	if len(s.Results.Points) != 2*len(remoteCases())+3 || len(s.Results.Goals) != 6 {
		t.Errorf("%d points, %d goals", len(s.Results.Points), len(s.Results.Goals))
	}
	// cellserver's own answers cost the Redis servers nothing, and in so short a time they may be idle.
	alone := regexp.MustCompile("a denied key|a hot key|" + regexp.QuoteMeta(peer.Cellserver+", memory"))
	for _, p := range s.Results.Points {
		byRedisRate := strings.HasPrefix(p.Peer, peer.RedisRateLibrary)
		if len(p.Rounds) != 1 || p.Rounds[0].Rate <= 0 || p.Rounds[0].CPUNs <= 0 && (byRedisRate || !alone.MatchString(p.Peer)) {
			t.Fatalf("%s: %+v", p.Peer, p.Rounds)
		}
		if byRedisRate && (p.Rounds[0].Scripts < 0.99 || p.Rounds[0].Scripts > 1.1) {
			t.Errorf("%s: %v scripts per call", p.Peer, p.Rounds[0].Scripts)
		}
	}
	for _, g := range s.Results.Goals {
		if g.Got.Median <= 0 && !alone.MatchString(g.Text) || g.Why != "" {
			t.Errorf("got %+v", g)
		}
	}
}
