package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/edge/rls"
)

// collectEnvoy sends the counts of Envoy's rate limit service by rule, under envoyproxy/ratelimit's names.
// Operators choose the rules; those with values of requests are bounded.
func (c *Config) collectEnvoy(to sink) {
	if c.Envoy == nil {
		return
	}
	series := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("ratelimit_service_rate_limit_"+name, help+" The name is envoyproxy/ratelimit's.", []string{"domain", "descriptor"}, nil)
	}
	total, within := series("total_hits", "Hits of a rule of --envoy-config."), series("within_limit", "Hits within the limit of the rule.")
	near, over := series("near_limit", "Hits within the limit of the rule, but beyond 80 % of it."), series("over_limit", "Hits over the limit of the rule.")
	shadow := series("shadow_mode", "Hits over the limit of the rule, allowed as it is a shadow.")
	c.Envoy.Metrics.Each(func(domain, descriptor string, counts *rls.Counts) {
		to.count(total, counts.TotalHits.Load(), domain, descriptor)
		to.count(within, counts.WithinLimit.Load(), domain, descriptor)
		to.count(near, counts.NearLimit.Load(), domain, descriptor)
		to.count(over, counts.OverLimit.Load(), domain, descriptor)
		to.count(shadow, counts.ShadowMode.Load(), domain, descriptor)
	})
	to.counter("envoy_domains_unknown_total", "Requests of Envoy for a domain that --envoy-config does not have.", c.Envoy.Metrics.NotFound())
	to.truth("envoy_config_reload_failed", "1 if the last reload of --envoy-config failed and the previous rules are in use.", c.EnvoyFailed())
}
