package envoyconfig

import "testing"

// TestMetricPaths: series have the names of envoyproxy/ratelimit's GetLimit, which writes each of a request's
// keys with the value that was matched.
func TestMetricPaths(t *testing.T) {
	const rate = "rate_limit: {unit: day, requests_per_unit: 1}"
	d := rulesOf(t, of(`
- {key: plain, `+rate+`}
- {key: plain, value: v, `+rate+`}
- {key: wild, value: "v*", `+rate+`}
- {key: "in*", `+rate+`}
- {key: "of*", value: "x", `+rate+`}
- {key: spelled_out, `+rate+`}
- {key: ends_, `+rate+`}
- {key: unspec, detailed_metric: true, `+rate+`}
- {key: shared, value: "v*", share_threshold: true, detailed_metric: true, descriptors: [{key: sub, detailed_metric: true, `+rate+`}]}
- {key: "part*", share_threshold: true, `+rate+`}
- {key: up, value_to_metric: true, descriptors: [{key: to, `+rate+`}]}
`)).Domain("d")
	for request, want := range map[string]string{
		"plain=a":              "plain",
		"plain=v":              "plain_v",
		"plain=":               "plain",
		"wild=vx":              "wild_v*",
		"wild_vx=y":            "wild_vx_wild_v*", // the wildcard has matched a part of the key, too
		"in1=a":                "in1_in*",
		"in1=":                 "in1_in*",
		"in*=a":                "in*_in*",
		"of1=x":                "of1_of*_x",
		"spelled=out":          "spelled_out",
		"spelled_out=a":        "spelled_out",
		"ends=":                "ends",
		"unspec=":              "unspec_",
		"unspec=a":             "unspec_a",
		"shared=vx,sub=":       "shared_v*.sub shared as v*",
		"shared=vx,sub=a":      "shared_v*.sub_a shared as v*",
		"party=a":              "party_part* party as part*",
		"up=,to=x":             "up.to",
		"up=here,to=x":         "up_here.to",
		"up=here,to=x,other=y": "none",
	} {
		if got := found(d, request); got != want {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	// those of one series each have their row however many requests there are
	for _, request := range []string{"plain=a", "plain=v", "wild=vx", "spelled=out", "spelled_out=a"} {
		entries := entriesOf(request)
		if m := Find(d, entries); m.IsDynamic() {
			t.Errorf("%s counts as one of many series", request)
		}
	}
}
