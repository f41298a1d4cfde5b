package httpapi_test

import "testing"

// TestMoney: headers and members keep integers, the policy names their unit, and the text of a denial has
// dollars.
func TestMoney(t *testing.T) {
	t.Parallel()
	h := start(t, options{})
	h.say(t, "CL.LIMIT SET spend FIXEDWINDOW 50000000 3600 UNIT usd MAXRESERVATION 0.5", "CL.LIMIT SET api FIXEDWINDOW 5 60",
		"CL.LIMIT SET two FIXEDWINDOW 1000000 60 FIXEDWINDOW 2500 1 UNIT usd", "CL.LIMIT OVERRIDE spend big FIXEDWINDOW 80000000 3600",
		"CL.LIMIT OVERRIDE spend out DENY", "CL.LIMIT OVERRIDE spend free UNLIMITED", "CL.LIMIT SET shadow FIXEDWINDOW 1 60 UNIT usd SHADOW")
	const policy = `"spend";q=50000000;qu="usd";w=3600`
	for _, tt := range []struct {
		name, body string
		status     int
		contains   string
		policy     string
	}{
		{"allowed", `{"limit":"spend","key":"k","quantity":49630000}`, 200, `"limit":50000000,"remaining":370000,`, policy},
		{"denied", `{"limit":"spend","key":"k","quantity":1200000}`, 429, `"detail":"try again in 3600 s; $0.37 of $50.00 is left",`, policy},
		{"integers of a denial", `{"limit":"spend","key":"k","quantity":1200000}`, 429, `"allowed":false,"limit":50000000,"remaining":370000,`, policy},
		{"never", `{"limit":"spend","key":"k","quantity":50000001}`, 429, `"detail":"this much is never allowed at once; $0.37 of $50.00 is left",`, policy},
		{"an override", `{"limit":"spend","key":"big","quantity":80000001}`, 429, `; $80.00 of $80.00 is left"`, `"spend";q=80000000;qu="usd";w=3600`},
		{"deny", `{"limit":"spend","key":"out"}`, 429, `"detail":"nothing is ever allowed",`, `"spend";q=0;qu="usd"`},
		{"unlimited", `{"limit":"spend","key":"free"}`, 200, `"allowed":true`, ""},
		{"a shadow", `{"limit":"shadow","key":"k","quantity":2}`, 200, `"allowed":true`, `"shadow";q=1;qu="usd";w=60`},
		{"rules", `{"limit":"two","key":"k","quantity":2400}`, 200, `"remaining":100,`, `"two:1";q=1000000;qu="usd";w=60, "two:2";q=2500;qu="usd";w=1`},
		{"less than a cent", `{"limit":"two","key":"k","quantity":2400}`, 429, `; $0.0001 of $0.0025 is left"`, "*"},
		{"units", `{"limit":"api","key":"k","quantity":6}`, 429, `"detail":"this many are never allowed at once",`, `"api";q=5;w=60`},
		{"a caller's own", `{"key":"k","algorithm":"fixed_window","max_count":5,"period":60,"quantity":6}`, 429, `"detail":"this many are never allowed at once",`, `"default";q=5;w=60`},
		{"several, the tightest in dollars", `{"checks":[{"limit":"api","key":"m"},{"limit":"spend","key":"k","quantity":1200000}]}`, 429, `; $0.37 of $50.00 is left"`,
			`"api";q=5;w=60, ` + policy},
		{"several, the tightest in units", `{"checks":[{"limit":"spend","key":"m"},{"limit":"api","key":"m","quantity":6}]}`, 429,
			`"detail":"this many are never allowed at once",`, policy + `, "api";q=5;w=60`},
	} {
		got := h.post(t, "check", tt.body).is(t, tt.status, tt.contains)
		if tt.policy != "*" {
			got.has(t, "RateLimit-Policy", tt.policy)
		}
		if t.Failed() {
			t.Fatal(tt.name)
		}
	}
	h.send(t, "GET", "/v1/limits/spend", "").is(t, 200, `"policy":"FIXEDWINDOW 50000000 3600","file_overrides":0,"holds":0,"holds_settled":0,"holds_settled_late":0,"unit":"usd","max_reservation":0.5,"spent_zone":"UTC"`)
	h.send(t, "GET", "/v1/limits/api", "").is(t, 200, `"holds_settled_late":0,"spent_zone":"UTC","spent_by_day":[],"spenders":[]}`)
	h.send(t, "GET", "/v1/limits/spend/explain?key=k", "").is(t, 200, `{"rule":"FIXEDWINDOW 50000000 3600 ($0.37 of $50.00 left)","allowed":true,"limit":50000000,"remaining":369999,`)
}
