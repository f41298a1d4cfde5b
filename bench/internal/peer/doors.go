package peer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"cellserver/bench/internal/control"
	"cellserver/bench/internal/load"
	"cellserver/internal/test/patience"
)

// The peers of cellserver's doors.
const (
	EmptyHTTP     = "an empty net/http handler"
	EmptyFastHTTP = "an empty fasthttp handler"
	EmptyGRPC     = "an empty grpc-go handler"
	RateLimit     = "envoyproxy/ratelimit"
)

// Limits that the doors' calls name: no call is denied, or each but a key's first, or about half at
// 40,000 calls a second of 10,000 keys.
const (
	doorLimit   = "api"
	deniedLimit = "denied"
	mixedLimit  = "mixed"

	limitsFile = "limits:\n  " + doorLimit + ": {rules: [{algorithm: funnel, max_burst: 1000000, count: 1000, period: 24h}]}\n" +
		"  " + deniedLimit + ": {rules: [{algorithm: funnel, max_burst: 0, count: 1, period: 24h}]}\n" +
		"  " + mixedLimit + ": {rules: [{algorithm: funnel, max_burst: 0, count: 4, period: 1s}]}\n"
	envoyFile = "domain: " + control.Domain + "\ndescriptors:\n  - key: " + control.Entry + "\n    rate_limit: {unit: hour, requests_per_unit: %d}\n"
)

// Check is a GET of HTTP, as a proxy sends it.
func Check() (load.Command, error) { return checkOf(doorLimit) }

// CheckDenied is Check for a limit that denies each call but a key's first.
func CheckDenied() (load.Command, error) { return checkOf(deniedLimit) }

// CheckMixed is Check for a limit that denies some calls.
func CheckMixed() (load.Command, error) { return checkOf(mixedLimit) }

func checkOf(limit string) (load.Command, error) {
	return CheckAt("/v1/check/" + limit + "?key=u:" + load.KeyMark)
}

// CheckPost is a POST of HTTP, as an application sends it.
func CheckPost() (load.Command, error) {
	return load.NewPost("/v1/check", `{"limit":"`+doorLimit+`","key":"u:`+load.KeyMark+`"}`,
		"Host: localhost", "User-Agent: bench", "Accept: */*", "Content-Type: application/json")
}

// CheckRESP is CL.CHECK.
func CheckRESP() load.Command {
	return load.NewCommand("CL.CHECK", doorLimit, "u:"+load.KeyMark).LimitedBy('1')
}

// CheckAt is a GET of a path.
func CheckAt(path string) (load.Command, error) {
	return load.NewGet(path, "Host: localhost", "User-Agent: bench", "Accept: */*")
}

// RESP is the door that each cellserver has.
const RESP = "tcp"

// StartDoor starts cellserver with a door, RESP, control.HTTP or control.GRPC, whose address is the server's.
func (k *Kit) StartDoor(ctx context.Context, door string, flags ...string) (*Server, error) {
	dir, err := k.rules()
	if err != nil {
		return nil, err
	}
	if door == control.GRPC {
		flags = append(flags, "--envoy-config", filepath.Join(dir, "config"))
	}
	return k.startDoor(ctx, dir, door, flags)
}

func (k *Kit) startDoor(ctx context.Context, dir, door string, flags []string) (*Server, error) {
	argv := []string{
		k.cellserver, "--addr", "127.0.0.1:0", "--metrics-addr", "", "--maxclients", maxClients, "--limits-file", filepath.Join(dir, "limits.yaml"),
	}
	if door != RESP {
		argv = append(argv, "--"+door+"-addr", "127.0.0.1:0")
	}
	return start(ctx, spec{
		name: Cellserver, argv: append(argv, flags...), dir: k.dir,
		told: regexp.MustCompile(`msg=ready .*\b` + door + `=127\.0\.0\.1:(\d+)`),
	})
}

// StartXDS starts cellserver with control.GRPC, and the limits that control.XDS at an address gives.
func (k *Kit) StartXDS(ctx context.Context, from netip.AddrPort) (*Server, error) {
	dir, err := k.rules()
	if err != nil {
		return nil, err
	}
	s, err := k.startDoor(ctx, dir, control.GRPC, []string{"--envoy-xds", from.String()})
	if err != nil {
		return nil, err
	}
	if err := awaitLimits(ctx, s.Addr); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// rules writes the limits, and returns their directory.
func (k *Kit) rules() (string, error) {
	dir := filepath.Join(k.dir, "doors")
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o755); err != nil {
		return "", fmt.Errorf("peer: %w", err)
	}
	for file, text := range map[string]string{"limits.yaml": limitsFile, "config/bench.yaml": fmt.Sprintf(envoyFile, control.PerHour)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("peer: %w", err)
		}
	}
	return dir, nil
}

// StartControl starts one of package control.
func (k *Kit) StartControl(ctx context.Context, name string) (*Server, error) {
	return start(ctx, spec{
		name: name, argv: append(append([]string{}, k.control...), name), dir: k.dir, told: regexp.MustCompile(`^(\d+)$`),
	})
}

// StartRateLimit starts envoyproxy/ratelimit with a Redis of its own, whose CPU time and memory are added.
func (k *Kit) StartRateLimit(ctx context.Context) (*Server, error) {
	dir, err := k.rules()
	if err != nil {
		return nil, err
	}
	redis, err := k.StartRedis(ctx)
	if err != nil {
		return nil, err
	}
	s, err := k.startRateLimit(ctx, dir, redis.Addr)
	if err != nil {
		redis.Stop()
		return nil, err
	}
	s.beside = redis
	return s, nil
}

func (k *Kit) startRateLimit(ctx context.Context, dir string, redis netip.AddrPort) (*Server, error) {
	file, err := filepath.Abs(k.rateLimit)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	var ports [3]string // for HTTP, debugging and gRPC
	var port int
	for i := range ports {
		if port, err = freePort(ctx); err != nil {
			return nil, err
		}
		ports[i] = strconv.Itoa(port)
	}
	s, err := start(ctx, spec{
		name: RateLimit, argv: []string{file}, port: port, dir: k.dir,
		env: []string{
			"HOST=127.0.0.1", "PORT=" + ports[0], "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=" + ports[1],
			"GRPC_HOST=127.0.0.1", "GRPC_PORT=" + ports[2], "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.String(),
			"RUNTIME_ROOT=" + dir, "RUNTIME_SUBDIRECTORY=", "RUNTIME_WATCH_ROOT=false", "USE_STATSD=false", "LOG_LEVEL=ERROR",
		},
	})
	if err != nil {
		return nil, err
	}
	if err := healthy(ctx, "http://"+net.JoinHostPort("127.0.0.1", ports[0])+"/healthcheck"); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// healthy waits until a URL answers 200.
func healthy(ctx context.Context, url string) error {
	if patience.Until(func() bool {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}) {
		return nil
	}
	return fmt.Errorf("peer: %s does not become healthy", url)
}
