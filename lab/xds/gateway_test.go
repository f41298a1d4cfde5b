package xdstest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sigs.k8s.io/yaml"

	"cellserver/internal/test/randtest"
	"cellserver/internal/test/redistest"
)

// translated has what Envoy Gateway's translator makes of its policies.
const translated = "internal/xds/translator/testdata/out/ratelimit-config/*.yaml"

// TestGateway: what Envoy Gateway sends decides here as there.
func TestGateway(t *testing.T) {
	t.Parallel()
	seed := randtest.Seed(t, 52)
	p := startPair(t)
	files, draws, denied := 0, 600, 0
	if testing.Short() {
		draws = 60
	}
	for _, file := range gatewaySource.glob(t, translated) {
		if strings.HasSuffix(file, ".routes.yaml") {
			continue
		}
		files++
		all := readResources(t, file)
		p.Use(t, uint32(files), all) //nolint:gosec // few
		draw := drawer{rand.New(rand.NewPCG(seed, uint64(files))), all}
		for range draws {
			if p.ask(t, filepath.Base(file), draw.call()) == rls.RateLimitResponse_OVER_LIMIT {
				denied++
			}
		}
	}
	if why := p.plane.Refusals(); len(why) > 0 {
		t.Errorf("refused: %q", why)
	}
	t.Logf("%d files: %d calls, %d of them denied, %d between two seconds", files, files*draws, denied, p.parted)
	if denied == 0 || denied == files*draws {
		t.Errorf("%d calls are denied", denied)
	}
}

// pair is cellserver beside envoyproxy/ratelimit with a Redis of its own, with limits of one control plane.
type pair struct {
	plane      *controlPlane
	here, real *service
	counts     []*redis.Client // of both
	parted     int             // calls
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{plane: startControlPlane(t)}
	behind := redistest.Start(t)
	program := filepath.Join(t.TempDir(), "ratelimit")
	goIn(t, ratelimitSource.clone(t), "build", "-o", program, "./src/service_cmd")
	p.here = launch(t, ratelimit(t), p.plane)
	p.real = launch(t, program, p.plane, "REDIS_SOCKET_TYPE=unix", "REDIS_URL="+behind.Options().Addr, "LOG_LEVEL=ERROR")
	p.counts = []*redis.Client{behind, redistest.NewClient(t, redis.Options{Addr: p.here.doors["RESP"]})}
	return p
}

// Use gives both other resources, and waits until both use them, by a limit that numbers them:
// envoyproxy/ratelimit accepts earlier.
func (p *pair) Use(t *testing.T, number uint32, all []*config.RateLimitConfig) {
	t.Helper()
	p.plane.Set(t, strconv.Itoa(int(number)), append(all, limits("numbered", number, "of"))...)
	for _, s := range []*service{p.here, p.real} {
		s.Serving(t).Becomes(t, "use the resources", func() bool { return s.Limits(t, "numbered", "of=")[0] == number })
	}
}

// ask makes a call on both, whose answers must be equal. Windows begin with a second: when one begins between
// the two, they may count the call in different windows, and begin anew.
func (p *pair) ask(t *testing.T, what string, request *rls.RateLimitRequest) rls.RateLimitResponse_Code {
	t.Helper()
	for {
		began := time.Now().Unix()
		here, err := p.here.ShouldRateLimit(t, request)
		there, realErr := p.real.ShouldRateLimit(t, request)
		ended := time.Now().Unix()
		switch {
		case err != nil || realErr != nil:
			t.Fatalf("%s: of %v\nhere: %v\nthere: %v", what, request, err, realErr)
		case began == ended && !proto.Equal(here, there):
			t.Fatalf("%s: of %v\nhere: %v\nthere: %v", what, request, here, there)
		case began == ended:
			return here.OverallCode
		}
		p.parted++
		for _, c := range p.counts {
			if err := c.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// readResources reads a file in which each document is a resource. Fields of files alone must be unset.
func readResources(t *testing.T, file string) (all []*config.RateLimitConfig) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"value_to_metric", "share_threshold"} {
		if bytes.Contains(text, []byte(field+": true")) {
			t.Fatalf("%s: %s does not exist over xDS", file, field)
		}
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		resource := &config.RateLimitConfig{}
		asJSON, err := yaml.YAMLToJSON(document)
		if err == nil {
			err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(asJSON, resource)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, resource)
	}
	return all
}

// drawer draws calls about resources.
type drawer struct {
	*rand.Rand
	all []*config.RateLimitConfig
}

func (d drawer) oneIn(n int) bool { return d.IntN(n) == 0 }

func (d drawer) call() *rls.RateLimitRequest {
	of := d.all[d.IntN(len(d.all))]
	r := &rls.RateLimitRequest{Domain: of.Domain, HitsAddend: uint32(d.IntN(4))}
	if d.oneIn(20) {
		r.Domain += "-unknown"
	}
	for range 1 + d.IntN(3) {
		one := call("", strings.Join(d.path(of.Descriptors), ",")).Descriptors[0]
		if d.oneIn(5) {
			one.HitsAddend = wrapperspb.UInt64(uint64(d.IntN(4)))
		}
		r.Descriptors = append(r.Descriptors, one)
	}
	return r
}

// path draws entries along descriptors, mostly to an end of them.
func (d drawer) path(level []*config.RateLimitDescriptor) (entries []string) {
	for len(level) > 0 && (len(entries) == 0 || !d.oneIn(8)) {
		of := level[d.IntN(len(level))]
		key, value := of.Key, of.Value
		if value == "" || d.oneIn(10) {
			value = string(rune('a' + d.IntN(4)))
		}
		if d.oneIn(20) {
			key += "-other"
		}
		entries = append(entries, key+"="+value)
		level = of.Descriptors
	}
	if len(entries) == 0 || d.oneIn(15) {
		entries = append(entries, "more=1")
	}
	return entries
}
