package commandstest

import (
	"testing"
	"time"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/redis/commands"
)

const envoyLimits = `domain: site
descriptors:
- key: remote_address
  rate_limit: {unit: minute, requests_per_unit: 60}
- key: customer
  value: gold*
  share_threshold: true
  descriptors:
  - key: path
    value: /search
    rate_limit: {name: search, unit: day, requests_per_unit: 500, algorithm: sliding_window}
- key: customer
  rate_limit: {unlimited: true}
  shadow_mode: true
  detailed_metric: true
`

const otherEnvoyLimits = `domain: api
all_or_nothing: true
descriptors:
- key: tenant
  rate_limit: {unit: week, requests_per_unit: 0}
  quota_mode: true
  value_to_metric: true
`

// EnvoyRules returns the limits for Envoy of tests.
func EnvoyRules(t testing.TB) *envoyconfig.Rules {
	t.Helper()
	rules, err := envoyconfig.RulesOf([]envoyconfig.File{
		{Path: "site.yaml", Text: []byte(envoyLimits)}, {Path: "api.yaml", Text: []byte(otherEnvoyLimits)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// WithEnvoy has a door for Envoy, with limits from a source.
func WithEnvoy(t testing.TB, from envoyconfig.Source) func(*commands.Config) {
	t.Helper()
	st := envoyconfig.Status{Source: from}
	switch from {
	case envoyconfig.NoSource:
	case envoyconfig.Files:
		st.From, st.Failed, st.Rules = "/etc/limits", true, EnvoyRules(t)
	case envoyconfig.XDS:
		st.From, st.Rules = "envoy-gateway:18001", EnvoyRules(t)
		st.XDS = envoyconfig.XDSStatus{
			Loaded: true, Version: "v7\r\n", Stale: true, Since: time.Unix(0, T0), Accepted: 3, Rejected: 2,
			Refusal: `resource "site": domain is missing`, Failure: "connection refused",
		}
	}
	return func(c *commands.Config) { c.Envoy = func() envoyconfig.Status { return st } }
}
