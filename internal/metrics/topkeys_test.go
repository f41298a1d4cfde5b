package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cellserver/internal/topkeys"
)

func TestTopKeys(t *testing.T) {
	top := func(ranking topkeys.Ranking, n int) []topkeys.Entry {
		all := []topkeys.Entry{
			{Name: "customer:4711", CallsPerSecond: 20},
			{Name: "customer:4712", CallsPerSecond: 10, DB: 0},
			{Name: "\xff\n\"", CallsPerSecond: 2, DB: 3},
		}
		if ranking == topkeys.Limited {
			all = all[1:2]
		}
		return all[:min(n, len(all))]
	}
	const head = `# HELP cellserver_top_key_calls_per_second Estimated calls per second of the most requested and the most limited keys, over about the last minute.
# TYPE cellserver_top_key_calls_per_second gauge
`
	for _, tt := range []struct {
		name  string
		n     int
		names NameStyle
		want  string
	}{
		{"off", 0, PlainNames, ""},
		{"one", 1, PlainNames, head + `cellserver_top_key_calls_per_second{db="0",key="customer:4711",kind="asked"} 20
cellserver_top_key_calls_per_second{db="0",key="customer:4712",kind="denied"} 10
`},
		{"plain", 9, PlainNames, head + `cellserver_top_key_calls_per_second{db="0",key="customer:4711",kind="asked"} 20
cellserver_top_key_calls_per_second{db="0",key="customer:4712",kind="asked"} 10
cellserver_top_key_calls_per_second{db="0",key="customer:4712",kind="denied"} 10
cellserver_top_key_calls_per_second{db="3",key="\\xff\\n\"",kind="asked"} 2
`},
		{"cut", 9, CutNames, head + `cellserver_top_key_calls_per_second{db="0",key="customer...",kind="asked"} 30
cellserver_top_key_calls_per_second{db="0",key="customer...",kind="denied"} 10
cellserver_top_key_calls_per_second{db="3",key="\\xff\\n\"",kind="asked"} 2
`},
		{"hash", 1, HashedNames, head + `cellserver_top_key_calls_per_second{db="0",key="177ef160e583cce9",kind="asked"} 20
cellserver_top_key_calls_per_second{db="0",key="efee38f45bf9822d",kind="denied"} 10
`},
	} {
		registry := prometheus.NewRegistry()
		registry.MustRegister(newTopKeysCollector(top, tt.n, tt.names))
		page := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if got := page.Body.String(); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
	var s NameStyle
	if err := s.Set("md5"); err == nil || s.Set("cut") != nil || s != CutNames {
		t.Errorf("%v, and then %q", err, s)
	}
}
