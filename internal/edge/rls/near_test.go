package rls

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/edge/server"
)

// TestNear: the response names the limits that are near, by the share at which the metrics count them.
func TestNear(t *testing.T) {
	h := open(t, Config{Headers: true, Metadata: true, Rules: rulesOf(t, `
domain: d
descriptors:
- {key: a, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: named, rate_limit: {name: "the \"name\" é", unit: minute, requests_per_unit: 10}}
- {key: trial, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: q, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 10}}
- {key: none, rate_limit: {unit: minute, requests_per_unit: 0}}
- {key: free, rate_limit: {unlimited: true}}
- key: route
  descriptors: [{key: to, value: "x*", rate_limit: {unit: minute, requests_per_unit: 10}}]
`)}, server.Limits{MaxClients: 10})
	many := "d"
	for i := range 2 * maxNear {
		many += fmt.Sprintf(" k%d=1!1/MINUTE", i)
	}
	for _, tt := range []struct{ request, header string }{
		{"d a=1 +8", ""}, {"d a=1", `"a"`}, {"d a=1#0", `"a"`}, {"d a=1#-2", ""}, {"d a=1 +3", `"a"`}, {"d a=1", ""},
		{"d a=2 a=3 +9", `"a"`}, {"d named=1 +9", `"the \"name\" ??"`},
		{"d trial=1 +9", `"trial"`}, {"d trial=1 +9", `"trial"`}, {"d trial=2 +11", `"trial"`}, {"d q=1 +9", `"q"`}, {"d q=1 +2", ""},
		{"d none=1", ""}, {"d none=1#0", ""}, {"d free=1", ""}, {"d nosuch=1", ""},
		{"d route=r,to=xy +9", `"route.to_x*"`}, {"d own=secret,of=it#9!10/MINUTE a=4#9", `"own.of", "a"`},
		{many, ""},
	} {
		r, err := h.ask(t, requestOf(t, tt.request), "")
		if err != nil {
			t.Fatal(err)
		}
		got, listed := "", 0
		for _, header := range r.ResponseHeadersToAdd {
			if header.Key == "x-ratelimit-near" {
				got = header.Value
			}
		}
		if list := r.DynamicMetadata.Fields["near"]; list != nil {
			listed = len(list.GetListValue().Values)
		}
		if tt.request == many {
			tt.header = got
			if listed != maxNear {
				t.Errorf("%d names", listed)
			}
		}
		if want := strings.Count(got, `", "`); got != tt.header || got != "" && listed != want+1 || got == "" && listed > 0 {
			t.Errorf("%s: got %s and %d names, want %s", tt.request, got, listed, tt.header)
		}
	}
}
