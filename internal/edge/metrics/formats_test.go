package metrics

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"cellserver/internal/base/buildinfo"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls"
	"cellserver/internal/store"
)

// prometheusAccepts is the header of a Prometheus without native histograms.
const prometheusAccepts = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"

// everything is a server with all features in use.
func everything(t testing.TB) *harness {
	t.Helper()
	h := newHarness(persists(store.Durability{}), func(c *Config) {
		c.Remote, c.Replication, c.TopKeys, c.TopKeyNames = remoteStatus, leaderStatus, 10, PlainNames
		c.Doors = map[string]*door.Stats{"http": door.NewStats()}
		c.Doors["http"].Count(door.Limited, 2e6)
		c.Envoy, c.EnvoyLimits = rls.New(rls.Config{}), xdsLimits
	})
	h.say(t, "CL.LIMIT SET login 4 5 60\r\nCL.CHECK login user\r\nCL.MRESERVE 1 login user 1 TTL 30s\r\n"+
		"CL.LIMIT SET spend QUOTA 50000000 MONTH UNIT usd\r\nCL.CHECK spend user 1 DEBIT\r\n"+
		"CL.LIMIT SET api 4 5 60 99 100 86400\r\nCL.LIMIT OVERRIDE api user UNLIMITED\r\nCL.THROTTLE \"quo\\\"te\\nline\" 1 1 60\r\nEVAL 'return 1' 0\r\nFOO\r\nINCR n\r\nSET text x EX 60\r\n")
	return h
}

// families returns the families of a server with all features in use, and of a replica.
func families(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	all := newHarness(func(c *Config) { c.Replication = replicaStatus }).gather(t)
	maps.Copy(all, everything(t).gather(t))
	return all
}

// TestFormats checks that every format is served on request, text by default, with the same series.
func TestFormats(t *testing.T) {
	h := everything(t)
	var texts []string
	for _, tt := range []struct{ accept, want string }{
		{"", "text/plain; version=0.0.4"},
		{"*/*", "text/plain; version=0.0.4"},
		{"text/html,application/xhtml+xml,*/*;q=0.8", "text/plain; version=0.0.4"},
		{"application/openmetrics-text", "application/openmetrics-text; version=0.0.1"},
		{"application/openmetrics-text;version=1.0.0", "application/openmetrics-text; version=1.0.0"},
		{prometheusAccepts, "application/openmetrics-text; version=1.0.0"},
		{"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"},
	} {
		answer := h.get("/metrics", "Accept", tt.accept)
		if got := answer.Header().Get("Content-Type"); answer.Code != http.StatusOK || !strings.HasPrefix(got, tt.want) {
			t.Errorf("Accept %q: %d, %q, want %q", tt.accept, answer.Code, got, tt.want)
		}
		text := answer.Body.String()
		open := strings.HasPrefix(tt.want, "application/openmetrics-text")
		if strings.HasSuffix(text, "\n# EOF\n") != open {
			t.Errorf("Accept %q: it ends with %q", tt.accept, text[len(text)-20:])
		}
		if !strings.Contains(tt.want, "protobuf") {
			texts = append(texts, text)
		}
	}
	want := seriesNames(texts[0])
	for _, text := range texts[1:] {
		if got := seriesNames(text); !slices.Equal(got, want) {
			t.Errorf("other series: %d and %d", len(got), len(want))
		}
		if strings.Contains(text, "_created") || strings.Contains(text, "} # {") {
			t.Error("there are _created lines or exemplars")
		}
	}
}

// seriesNames returns our series in a scrape; the text formats write bucket bounds differently.
func seriesNames(text string) []string {
	all := names(regexp.MustCompile(`le="(\d+)\.0"`).ReplaceAllString(text, `le="$1"`))
	slices.Sort(all)
	return all
}

// TestLint checks our families by promlint and by further rules of OpenMetrics.
func TestLint(t *testing.T) {
	all := families(t)
	sent := make([]*dto.MetricFamily, 0, len(all))
	for name, f := range all {
		if f.GetType() == dto.MetricType_COUNTER != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.GetType())
		}
		// client_golang has such a pair, go_memstats_alloc_bytes, which Prometheus accepts.
		_, ambiguous := all[strings.TrimSuffix(name, "_total")]
		if ambiguous && strings.HasSuffix(name, "_total") && strings.HasPrefix(name, "cellserver_") {
			t.Errorf("%s and a family without _total have one name in OpenMetrics", name)
		}
		sent = append(sent, f)
	}
	problems, err := promlint.NewWithMetricFamilies(sent).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", err, problems)
	}
}

func TestBuildInfo(t *testing.T) {
	for _, tt := range []struct {
		build buildinfo.Info
		want  []string
	}{
		{buildinfo.Info{Version: "1.2.3", Revision: "50929fe", Go: "go1.26"}, []string{"go1.26", "50929fe", "1.2.3"}},
		{buildinfo.Info{Version: "1.2.3", Revision: "50929fe", Modified: true, Go: "go1.26"}, []string{"go1.26", "50929fe-modified", "1.2.3"}},
		{buildinfo.Info{Version: "1.2.3", Go: "go1.26"}, []string{"go1.26", "unknown", "1.2.3"}},
	} {
		info := newHarness(func(c *Config) { c.Build = tt.build }).gather(t)["cellserver_build_info"]
		if got := value(t, info, tt.want...); got != 1 {
			t.Errorf("%+v: %s", tt.build, info)
		}
	}
}
