package dashboard

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/dashboard/words"
)

func envoyRules(t *testing.T) *envoyconfig.Rules {
	t.Helper()
	rules, err := envoyconfig.RulesOf([]envoyconfig.File{{Path: "a", Text: []byte(
		"domain: a\ndescriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 1}}, {key: c, rate_limit: {unit: day, requests_per_unit: 1}}]\n",
	)}})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestEnvoyPart: the page tells where the limits for Envoy come from, and which faults they have.
func TestEnvoyPart(t *testing.T) {
	rules := envoyRules(t)
	xds := func(x envoyconfig.XDSStatus) envoyconfig.Status {
		return envoyconfig.Status{Source: envoyconfig.XDS, From: "xds:18001", Rules: rules, XDS: x}
	}
	since := time.Unix(0, testNowNs)
	for _, tt := range map[string]struct {
		of    envoyconfig.Status
		want  []string
		fault string
	}{
		"none": {envoyconfig.Status{}, []string{"<dd>none: nothing is limited</dd>", "<dt>Domains</dt><dd>0</dd>"}, ""},
		"files": {envoyconfig.Status{Source: envoyconfig.Files, From: "/etc/limits", Rules: rules},
			[]string{"<dd>files in /etc/limits</dd>", "<dt>Domains</dt><dd>1</dd>", "<dt>Rules</dt><dd>2</dd>"}, ""},
		"connected": {xds(envoyconfig.XDSStatus{Connected: true, Loaded: true, Version: hostile, Since: since, Accepted: 1234, Rejected: 5}),
			[]string{
				"<dd>xDS server xds:18001</dd>", "<dt>Connection</dt><dd>up</dd>", "<dt>Version</dt><dd>&lt;img src=x", "<dd>" + utc(testNowNs) + "</dd>",
				"<dt>Versions accepted</dt><dd>1,234</dd>", "<dt>Answers rejected</dt><dd>5</dd>",
			}, ""},
		"rejected": {xds(envoyconfig.XDSStatus{Connected: true, Loaded: true, Version: "6", Since: since, Refusal: hostile}),
			[]string{announced(xdsRejected, "The xDS server&#39;s latest limits for Envoy were rejected. The previous limits stay in use."), "<code>&lt;img src=x"},
			"XDSRejected"},
		"rejected first": {xds(envoyconfig.XDSStatus{Connected: true, Refusal: hostile}),
			[]string{announced(xdsRejected, "The xDS server&#39;s latest limits for Envoy were rejected. There are no limits for Envoy yet: its calls get an error.")},
			"XDSRejected"},
		"away": {xds(envoyconfig.XDSStatus{Loaded: true, Version: "7", Since: since, Failure: "connection refused"}),
			[]string{announced(xdsDisconnected, "The xDS server that gives the limits for Envoy is not connected. The last limits stay in use"), "<code>connection refused</code>"},
			"XDSDisconnected"},
		"stale": {xds(envoyconfig.XDSStatus{Loaded: true, Version: "7", Since: since, Stale: true}),
			[]string{"The limits kept before the start are in use", "<dt>Version</dt><dd>7, kept before the start</dd>"}, "XDSDisconnected"},
		"never": {xds(envoyconfig.XDSStatus{}),
			[]string{"There are no limits for Envoy yet: its calls get an error.", "<dt>Version</dt><dd>none yet</dd>", "<dt>In use since</dt><dd>" + words.English().Never + "</dd>"}, "XDSDisconnected"},
		"both": {xds(envoyconfig.XDSStatus{Loaded: true, Since: since, Refusal: strings.Repeat("x", 10_000)}),
			[]string{announced(xdsRejected, ""), "<code>" + strings.Repeat("x", maxEnvoyText) + "</code>", `<li data-k="XDSDisconnected">`}, "XDSRejected"},
	} {
		s := testSource(nil)
		s.EnvoyLimits = func() envoyconfig.Status { return tt.of }
		page := body(t, New(s), "lang=en")
		wantText(t, page, tt.want...)
		noMarkup(t, page)
		if tt.fault == "" {
			wantText(t, page, noFault)
		} else {
			wantText(t, page, `data-k="what-`+tt.fault+`"`)
		}
		wantText(t, body(t, New(s), "lang=zh"), `>`+words.Chinese().EnvoyHeading+`</h2>`)
	}
	lacksText(t, body(t, New(testSource(nil)), "lang=en"), words.English().EnvoyHeading)
}
