package xdstest

import (
	"embed"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/processtest"
)

// runnerFiles take the place of the runner in envoyproxy/ratelimit.
//
//go:embed testdata/runner
var runnerFiles embed.FS

const (
	runnerDir = "src/service_cmd/runner"
	theirDir  = "test/integration"
)

// theirTests are all of them, by what becomes of them and why.
var theirTests = map[string][]string{
	"pass": {
		"TestBasicConfig/WithoutPerSecondRedis",
		"TestBasicConfig/WithPerSecondRedis",
		"TestBasicConfig/WithoutPerSecondRedisWithCachePrefix",
		"TestBasicConfig/WithoutPerSecondRedisWithstopCacheKeyIncrementWhenOverlimitConfig",
		"TestBasicConfig/WithPerSecondRedisWithstopCacheKeyIncrementWhenOverlimitConfig",
		"TestXdsProviderBasicConfig/WithoutPerSecondRedis",
		"TestXdsProviderBasicConfig/WithPerSecondRedis",
		"TestBasicConfig_ExtraTags",
		"TestBasicReloadConfig/BasicWithoutWatchRoot",
		"TestBasicReloadConfig/ReloadWithoutWatchRoot",
		"TestXdsProviderBasicConfigReload/ReloadConfigWithXdsServer",
		"Test_mTLS",
		"Test_mTLSSetup",
		"TestReloadGRPCServerCerts/WithInitialCert",
		"TestReloadGRPCServerCerts/WithInitialCertFail",
		"TestReloadGRPCServerCerts/WithNewCertFail",
		"TestReloadGRPCServerCerts/WithNewCertOK",
		"TestShareThreshold/WithoutPerSecondRedis",
	},
	"fail: they expect hits and misses of a local cache of denied keys, of which there is none here": {
		"TestBasicConfig/WithoutPerSecondRedisWithLocalCache",
		"TestBasicConfig/WithPerSecondRedisWithLocalCache",
		"TestBasicConfig/WithoutPerSecondRedisWithLocalCacheAndstopCacheKeyIncrementWhenOverlimitConfig",
		"TestBasicConfig/WithPerSecondRedisWithLocalCacheAndstopCacheKeyIncrementWhenOverlimitConfig",
		"TestXdsProviderBasicConfig/WithoutPerSecondRedisWithLocalCache",
		"TestXdsProviderBasicConfig/WithPerSecondRedisWithLocalCache",
	},
	"skip: Redis's own": {
		"TestBasicTLSConfig", "TestBasicAuthConfig", "TestBasicAuthConfigWithRedisCluster", "TestBasicAuthConfigWithRedisSentinel",
	},
	"skip: memcache's own": {
		"TestBasicConfigMemcache", "TestConfigMemcacheWithMaxIdleConns", "TestMultiNodeMemcache",
	},
}

// TestTheirIntegrationTests runs those of envoyproxy/ratelimit with cellserver under the name ratelimit,
// without a Redis, and expects that each ends as in theirTests.
func TestTheirIntegrationTests(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	theirs := buildTheirs(t)
	for outcome, tests := range theirTests {
		is, _, _ := strings.Cut(outcome, ":")
		for _, test := range tests {
			theirs.want[test] = is
		}
	}
	got := map[string]string{}
	for _, test := range theirs.list(t) {
		if theirs.want[test] == "skip" {
			got[test] = "skip"
			continue
		}
		maps.Copy(got, theirs.run(t, test))
	}
	for _, test := range slices.Sorted(maps.Keys(got)) {
		t.Log(got[test], test)
	}
	if !maps.Equal(got, theirs.want) {
		t.Errorf("want %q", theirs.want)
	}
}

// theirs are tests as a program.
type theirs struct {
	path, dir string
	env       []string
	want      map[string]string // outcomes by tests, or by subtests of those that have some
}

// buildTheirs builds the tests with our runner in place of theirs.
func buildTheirs(t *testing.T) *theirs {
	t.Helper()
	dir := ratelimitSource.clone(t)
	replaceRunner(t, dir)
	replacePorts(t, dir)
	of := &theirs{path: filepath.Join(t.TempDir(), "theirs"), dir: filepath.Join(dir, theirDir), want: map[string]string{}}
	goIn(t, of.dir, "test", "-c", "-tags", "integration", "-o", of.path, ".")
	of.env = append(os.Environ(), "RATELIMIT_PROGRAM="+ratelimit(t), "RATELIMIT_METRICS="+processtest.FreeAddr(t), "TMPDIR="+t.TempDir())
	return of
}

func (p *theirs) output(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := processtest.Command(t, p.path, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *theirs) list(t *testing.T) []string {
	t.Helper()
	out, err := p.output(t, "-test.list", ".")
	tests := strings.Fields(out)
	if err != nil || len(tests) == 0 {
		t.Fatalf("%v: %q", err, out)
	}
	return tests
}

var outcomeLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// run returns the outcomes of a test's subtests, or its own without them. Many count within a minute and do
// not expect another to begin: what is not as wanted, or is missing after a panic, runs again, alone, at a
// minute's start.
func (p *theirs) run(t *testing.T, test string) map[string]string {
	t.Helper()
	all, _ := p.outcomes(t, test)
	for name, is := range p.want {
		if parent, _, _ := strings.Cut(name, "/"); parent != test || all[name] == is {
			continue
		}
		t.Logf("%s: %q; it runs again", name, all[name])
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		again, out := p.outcomes(t, name)
		if all[name] = again[name]; all[name] != is {
			t.Logf("%s: %q\n%s", name, all[name], out[max(0, len(out)-4000):])
		}
	}
	for name := range all {
		if strings.HasPrefix(name, test+"/") {
			delete(all, test)
		}
	}
	return all
}

func (p *theirs) outcomes(t *testing.T, test string) (all map[string]string, out string) {
	t.Helper()
	out, _ = p.output(t, "-test.v", "-test.run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$")
	all = map[string]string{}
	for _, m := range outcomeLine.FindAllStringSubmatch(out, -1) {
		all[m[2]] = strings.ToLower(m[1])
	}
	return all, out
}

// replaceRunner has the tests start a program.
func replaceRunner(t *testing.T, dir string) {
	t.Helper()
	to := filepath.Join(dir, runnerDir)
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(runnerFiles, "testdata/runner")
	if err == nil {
		err = os.CopyFS(to, files)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replacePorts gives the tests free ports, and no Redis.
func replacePorts(t *testing.T, dir string) {
	t.Helper()
	port := func() string {
		_, port, _ := net.SplitHostPort(processtest.FreeAddr(t))
		return port
	}
	xds := port()
	for file, changes := range map[string][]string{
		"integration_test.go": {
			"s.Port = 8082", "s.Port = " + port(),
			"s.GrpcPort = 8083", "s.GrpcPort = " + port(),
			"s.DebugPort = 8084", "s.DebugPort = " + port(),
			"common.WithMultiRedis(", "withoutRedis(",
		},
		"xds_sotw_integration_test.go": {"Port: 18000", "Port: " + xds, "localhost:18000", "localhost:" + xds},
	} {
		path := filepath.Join(dir, theirDir, file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		for pair := range slices.Chunk(changes, 2) {
			if !strings.Contains(text, pair[0]) {
				t.Fatalf("%s has no %q", path, pair[0])
			}
			text = strings.ReplaceAll(text, pair[0], pair[1])
		}
		if file == "integration_test.go" {
			text += "\nfunc withoutRedis(_ *testing.T, _ []common.RedisConfig, f func()) { f() }\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
