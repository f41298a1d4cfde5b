package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls"
)

// collectDoors sends the counts of the protocols beside RESP, by door.
func (c *Config) collectDoors(to sink) {
	requests := desc("door_requests_total", "Requests by door and outcome: allowed (or done), limited, refused for their own "+
		"fault (arguments, rights, tokens), or failed for the server's (loading, disk, store, memory, maximum of clients).", "door", "outcome")
	durations := desc("door_request_duration_seconds", "Duration of requests by door in seconds, from their header to their answer.", "door")
	for _, name := range slices.Sorted(maps.Keys(c.Doors)) {
		counts := c.Doors[name].Counts()
		for _, outcome := range door.Outcomes() {
			to.count(requests, counts.Of(outcome), name, outcome.String())
		}
		to <- newDuration(durations, counts.Durations, counts.Since, name)
	}
}

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
	c.Envoy.Metrics.Each(func(r rls.Row) {
		to.count(total, r.TotalHits, r.Domain, r.Descriptor)
		to.count(within, r.WithinLimit, r.Domain, r.Descriptor)
		to.count(near, r.NearLimit, r.Domain, r.Descriptor)
		to.count(over, r.OverLimit, r.Domain, r.Descriptor)
		to.count(shadow, r.ShadowMode, r.Domain, r.Descriptor)
	})
	to.counter("envoy_domains_unknown_total", "Requests of Envoy for a domain that --envoy-config does not have.", c.Envoy.Metrics.NotFound())
	to.truth("envoy_config_reload_failed", "1 if the last reload of --envoy-config failed and the previous rules are in use.", c.EnvoyFailed())
}
