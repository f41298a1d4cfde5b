package metrics

import "github.com/prometheus/client_golang/prometheus"

// collectLimits has a series for each limit and outcome: as many as limits.MaxNames allows, by names that operators chose.
func (c *collector) collectLimits(to sink) {
	all, reloads := c.config.Limits.All(), c.config.Limits.Reloads()
	to.gauge("limits", "Named limits that are defined, by --limits-file or CL.LIMIT SET.", len(all))
	to.truth("limits_file_reload_failed", "1 if the last attempt to read --limits-file failed, so that limits are as before.", reloads.LastFailed)
	decisions := desc("limit_decisions_total", "Decisions of CL.CHECK by named limit and outcome; shadow_limited was allowed, as the limit is a shadow.", "limit", "outcome")
	for _, l := range all {
		counts := l.Counts()
		to.series(decisions, prometheus.CounterValue, float64(counts.Allowed), l.Name, "allowed")
		to.series(decisions, prometheus.CounterValue, float64(counts.Limited), l.Name, "limited")
		to.series(decisions, prometheus.CounterValue, float64(counts.ShadowLimited), l.Name, "shadow_limited")
	}
}
