package metrics

import (
	"strings"
	"testing"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/rls"
	"cellserver/internal/redis/commands/commandstest"
)

func xdsLimits() envoyconfig.Status {
	return envoyconfig.Status{Source: envoyconfig.XDS, XDS: envoyconfig.XDSStatus{Loaded: true, Version: "7"}}
}

// TestEnvoyLimits: each source has its series.
func TestEnvoyLimits(t *testing.T) {
	rules := commandstest.EnvoyRules(t)
	for _, tt := range []struct {
		of   envoyconfig.Status
		want string
	}{
		{envoyconfig.Status{}, "envoy_config_reload_failed 0|envoy_domains 0|envoy_domains_unknown_total 0|envoy_global_shadow_mode_total 0|envoy_rules 0"},
		{envoyconfig.Status{Source: envoyconfig.Files, Rules: rules, Failed: true},
			"envoy_config_reload_failed 1|envoy_domains 2|envoy_domains_unknown_total 0|envoy_global_shadow_mode_total 0|envoy_rules 4"},
		{envoyconfig.Status{Source: envoyconfig.XDS, XDS: envoyconfig.XDSStatus{Failure: "x"}},
			"envoy_config_reload_failed 0|envoy_domains 0|envoy_domains_unknown_total 0|envoy_global_shadow_mode_total 0|envoy_rules 0|" +
				"envoy_xds_accepted_total 0|envoy_xds_connected 0|envoy_xds_last_rejected 0|envoy_xds_rejected_total 0|envoy_xds_stale 0|envoy_xds_unkept_total 0"},
		{envoyconfig.Status{Source: envoyconfig.XDS, Rules: rules, XDS: envoyconfig.XDSStatus{
			Connected: true, Loaded: true, Version: strings.Repeat("é\xff", 100), Stale: true, Accepted: 2, Rejected: 3, Unkept: 4, Refusal: "x",
		}}, "envoy_config_reload_failed 0|envoy_domains 2|envoy_domains_unknown_total 0|envoy_global_shadow_mode_total 0|envoy_rules 4|" +
			"envoy_xds_accepted_total 2|envoy_xds_connected 1|envoy_xds_last_rejected 1|envoy_xds_rejected_total 3|envoy_xds_stale 1|envoy_xds_unkept_total 4|" +
			`envoy_xds_version_info{version="` + strings.Repeat("é\uFFFD", 21) + `"} 1`},
	} {
		h := newHarness(func(c *Config) {
			c.Envoy, c.EnvoyLimits = rls.New(rls.Config{}), func() envoyconfig.Status { return tt.of }
		})
		var got []string
		for line := range strings.Lines(h.scrape(t)) {
			if series, ok := strings.CutPrefix(line, "cellserver_envoy_"); ok {
				got = append(got, "envoy_"+strings.TrimSpace(series))
			}
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("got\n%s, want\n%s", got, tt.want)
		}
	}
}

// TestLoads: in text and in OpenMetrics they have envoyproxy/ratelimit's names, and EXTRA_TAGS.
func TestLoads(t *testing.T) {
	h := newHarness(func(c *Config) {
		c.Envoy, c.EnvoyLabels = rls.New(rls.Config{}), map[string]string{"region": "eu"}
		c.EnvoyLimits = func() envoyconfig.Status { return envoyconfig.Status{Loads: envoyconfig.Loads{Done: 4, Failed: 5}} }
	})
	for _, accept := range []string{"", prometheusAccepts} {
		text := h.get("/metrics", "Accept", accept).Body.String()
		for _, want := range []string{"\nratelimit_service_config_load_success{region=\"eu\"} 4", "\nratelimit_service_config_load_error{region=\"eu\"} 5"} {
			if !strings.Contains(text, want) {
				t.Errorf("Accept %q: no %q in\n%s", accept, want, text)
			}
		}
	}
}
