package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cellserver/internal/decide/topkeys"
)

func TestTopKeys(t *testing.T) {
	top := func(ranking topkeys.Ranking, n int) []topkeys.Entry {
		all := []topkeys.Entry{
			{Name: "customer:4711", CallsPerSecond: 20, Error: 1.5},
			{Name: "customer:4712", CallsPerSecond: 10, Error: 1},
			{Name: "\xff\n\"", CallsPerSecond: 2, Error: 0.5, DB: 3},
		}
		if ranking == topkeys.Limited {
			all = all[1:2]
		}
		return all[:min(n, len(all))]
	}
	page := func(lines ...string) string {
		if lines == nil {
			return ""
		}
		const name = "cellserver_top_key_calls_per_second"
		rates := "# HELP " + name + " Estimated calls per second of the most requested and the most limited keys over about the last minute; " +
			"keys whose estimate is within its error are left out.\n# TYPE " + name + " gauge\n"
		errors := "# HELP " + name + "_error Error of top_key_calls_per_second.\n# TYPE " + name + "_error gauge\n"
		for _, line := range lines {
			f := strings.Fields(line)
			rates += name + f[0] + " " + f[1] + "\n"
			errors += name + "_error" + f[0] + " " + f[2] + "\n"
		}
		return rates + errors
	}
	for _, tt := range []struct {
		name  string
		n     int
		names NameStyle
		want  string
	}{
		{"off", 0, PlainNames, page()},
		{"one", 1, PlainNames, page(`{db="0",key="customer:4711",kind="asked"} 20 1.5`, `{db="0",key="customer:4712",kind="denied"} 10 1`)},
		{"plain", 9, PlainNames, page(`{db="0",key="customer:4711",kind="asked"} 20 1.5`, `{db="0",key="customer:4712",kind="asked"} 10 1`,
			`{db="0",key="customer:4712",kind="denied"} 10 1`, `{db="3",key="\\xff\\n\"",kind="asked"} 2 0.5`)},
		{"cut", 9, CutNames, page(`{db="0",key="customer...",kind="asked"} 30 2.5`, `{db="0",key="customer...",kind="denied"} 10 1`,
			`{db="3",key="\\xff\\n\"",kind="asked"} 2 0.5`)},
		{"hash", 1, HashedNames, page(`{db="0",key="177ef160e583cce9",kind="asked"} 20 1.5`, `{db="0",key="efee38f45bf9822d",kind="denied"} 10 1`)},
	} {
		registry := prometheus.NewRegistry()
		registry.MustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) { sink(ch).topKeys(top, tt.n, tt.names) }))
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if got := answer.Body.String(); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}
