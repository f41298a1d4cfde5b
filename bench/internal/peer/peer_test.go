package peer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/bench/internal/control"
	"cellserver/bench/internal/load"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// TestMain also is the program of controls.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "control" {
		control.Main(os.Args[2])
	}
	os.Exit(m.Run())
}

// kit has only what needs no build: redis-server.
func kit(t *testing.T) *Kit {
	t.Helper()
	k, err := Prepare(t.Context(), Source{
		Binary: "/bin/true", Control: []string{os.Args[0], "control"}, RateLimit: os.Getenv("RATELIMIT_BIN"),
	})
	if err != nil {
		processtest.SkipWithout(t, err.Error())
	}
	t.Cleanup(k.Close)
	return k
}

func redisServer(t *testing.T) *Server {
	t.Helper()
	s, err := kit(t).StartRedis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func run(t *testing.T, s *Server, c load.Command) *load.Result {
	t.Helper()
	g, err := load.Open(load.Config{Addr: s.Addr, Command: c, Conns: 2, Pipeline: 20, Keys: load.Keys{Dist: load.Hot, Count: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	r, err := g.Run(t.Context(), load.Plan{Requests: 40})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLimitersLimit: the peers do the same work. Of 40 calls on one key, 16 are allowed.
func TestLimitersLimit(t *testing.T) {
	s := redisServer(t)
	for name, prepare := range map[string]func(context.Context, *Server) (load.Command, error){
		"Lua": LuaFunnel, "redis_rate": RedisRate,
	} {
		c, err := prepare(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(strings.ToLower(c.String()), "evalsha ") {
			t.Errorf("%s sends %s", name, c)
		}
		if r := run(t, s, c); r.Limited != 40-burst-1 {
			t.Errorf("%s: %d of 40 limited, want %d", name, r.Limited, 40-burst-1)
		}
		client(s).FlushAll(t.Context())
	}
}

// TestLimitsShareNoKeys: one limit must not use up the funnels that another measures on the same server.
func TestLimitsShareNoKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []load.Command{Throttle(), ThrottlePass(), ThrottleLong(16), ThrottleLong(12), ThrottleLong(64)} {
		key := strings.Fields(c.String())[1]
		if seen[key] {
			t.Errorf("%s shares its keys", c)
		}
		seen[key] = true
	}
}

func TestCostOfAServer(t *testing.T) {
	s := redisServer(t)
	before, err := s.CPU()
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		run(t, s, Set())
	}
	after, err := s.CPU()
	if err != nil || after <= before || after-before > time.Minute {
		t.Errorf("CPU time %s, then %s: %v", before, after, err)
	}
	if bytes, err := s.RSS(); err != nil || bytes < 1<<20 || bytes > 1<<30 {
		t.Errorf("%d bytes: %v", bytes, err)
	}
}

func TestStopEndsIt(t *testing.T) {
	s := redisServer(t)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := syscall.Kill(s.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("it still runs: %v", err)
	}
	if s.Err() == nil {
		t.Error("Err does not say that it ended")
	}
}

func TestServerThatEndsIsNamed(t *testing.T) {
	_, err := start(t.Context(), spec{name: "x", argv: []string{"sh", "-c", "echo bad luck >&2; exit 3"}, told: regexp.MustCompile(`^(\d+)$`)})
	if err == nil || !strings.Contains(err.Error(), "bad luck") {
		t.Errorf("got %v", err)
	}
}

func TestContextEndsIt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := kit(t).StartRedis(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, ended := patience.Receive(s.ended); !ended {
		t.Error("it still runs")
		s.Stop()
	}
}

func TestMissingPeersAreNamed(t *testing.T) {
	k, err := Prepare(t.Context(), Source{Binary: "/bin/true", Dir: filepath.Join("..", "..", ".."), Throttlecrab: "/nowhere"})
	if err != nil {
		processtest.SkipWithout(t, err.Error())
	}
	defer k.Close()
	if !strings.Contains(k.Missing[RedisCell], "REDIS_CELL_SO") || !strings.Contains(k.Missing[Throttlecrab], "/nowhere") {
		t.Errorf("got %q", k.Missing)
	}
	if _, err := Prepare(t.Context(), Source{Dir: os.TempDir()}); err == nil || !strings.Contains(err.Error(), "--source") {
		t.Errorf("got %v", err)
	}
}

func TestFloor(t *testing.T) {
	k, err := Prepare(t.Context(), Source{Binary: "/bin/true", Dir: filepath.Join("..", "..", "..")})
	if err != nil {
		processtest.SkipWithout(t, err.Error())
	}
	defer k.Close()
	if why := k.Missing[Floor]; why != "" {
		processtest.SkipWithout(t, why)
	}
	s, err := k.StartFloor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if r := run(t, s, Throttle()); r.Requests != 40 || r.Limited != 0 {
		t.Errorf("%d replies, %d limited", r.Requests, r.Limited)
	}
}

// TestDoorControls answer the generator's requests, as does envoyproxy/ratelimit if the environment names it.
func TestDoorControls(t *testing.T) {
	k := kit(t)
	check, err := Check()
	if err != nil {
		t.Fatal(err)
	}
	post, err := CheckPost()
	if err != nil {
		t.Fatal(err)
	}
	call := ShouldRateLimit()
	for name, commands := range map[string][]load.Command{control.HTTP: {check, post}, control.FastHTTP: {check, post}, control.GRPC: {call}} {
		s, err := k.StartControl(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		for _, command := range commands {
			if r := run(t, s, command); r.Requests != 40 || r.Limited != 0 {
				t.Errorf("%s: %s: %+v", name, command, r)
			}
		}
	}
	if k.Missing[RateLimit] != "" {
		return
	}
	s, err := k.StartRateLimit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if r := run(t, s, call); r.Requests != 40 || r.Limited != 0 {
		t.Errorf("%s: %+v", call, r)
	}
	alone, err := cpuTime(s.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := s.CPU(); err != nil || all <= alone {
		t.Errorf("CPU time %s, without Redis %s: %v", all, alone, err)
	}
}
