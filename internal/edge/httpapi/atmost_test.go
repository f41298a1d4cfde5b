package httpapi_test

import (
	"strings"
	"testing"

	"cellserver/internal/edge/server"
	"cellserver/internal/test/resptest"
)

// TestAtMost takes what is left, by event loops and net/http, and says how much.
func TestAtMost(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]func(*server.Config){"loops": nil, "net/http": goroutines} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := withLimits(t, options{server: by})
			get := func(query string) response { return h.send(t, "GET", "/v1/check/"+query, "") }
			const ten = `{"limit":"api","key":"u","quantity":10,"at_most":true}`
			h.post(t, "check", ten).is(t, 200, `"remaining":6,"retry_after_ms":-1,"reset_after_ms":20000,"taken":10}`).has(t, "RateLimit", `"api";r=6;t=20`)
			h.post(t, "check", ten).is(t, 200, `"remaining":0,"retry_after_ms":-1,"reset_after_ms":32000,"taken":6,"near":true}`).has(t, "RateLimit", `"api";r=0;t=32`)
			h.post(t, "check", ten).is(t, 429, `"remaining":0,"retry_after_ms":2000,"reset_after_ms":32000,"taken":0}`).has(t, "Retry-After", "2")
			h.Clock.Advance(2*sec - 1)
			get("api?key=u&quantity=10&at_most=true&denied=403").is(t, 403, `"retry_after_ms":1,"reset_after_ms":30001,"taken":0}`)
			h.Clock.Advance(1)
			get("api?key=u&quantity=10&at_most=true").is(t, 200, `"reset_after_ms":32000,"taken":1,"near":true}`)
			get("api?key=u&at_most=true").is(t, 429, `"taken":0}`)
			get("api?key=u&at_most=false&quantity=2").is(t, 429, `"reset_after_ms":32000}`)
			if body := get("api?key=v&at_most=false").body; strings.Contains(body, "taken") {
				t.Errorf("a call for all or nothing: %s", body)
			}
			// of several rules the least; a shadow gives all
			h.say(t, "CL.LIMIT SET least FIXEDWINDOW 9 60 TOKENBUCKET 4 4 60")
			h.post(t, "check", `{"limit":"least","key":"u","quantity":7,"at_most":true}`).is(t, 200, `"limit":4,"remaining":0,"retry_after_ms":-1,"reset_after_ms":60000,"taken":4,"near":true}`).
				has(t, "RateLimit", `"least:1";r=5;t=60, "least:2";r=0;t=60`)
			h.post(t, "check", `{"limit":"shadow","key":"u","quantity":7,"at_most":true}`).is(t, 200, `"remaining":0,"retry_after_ms":-1,"reset_after_ms":60000,"taken":7,"near":true}`)
			h.post(t, "check", `{"limit":"shadow","key":"u","quantity":7,"at_most":true}`).is(t, 200, `"taken":7,"near":true}`)
			get("api?key=monitor&at_most=true&quantity=5").is(t, 200, `"limit":`+unlimited+`,"remaining":`+unlimited+`,"retry_after_ms":-1,"reset_after_ms":0,"taken":5}`)
			get("api?key=mallory&at_most=true&quantity=5").is(t, 429, `"taken":0}`)
			for _, algorithm := range []string{
				`"funnel","max_burst":4,"count":5,"period":60`, `"token_bucket","capacity":5,"refill":5,"period":60`, `"fixed_window","max_count":5,"period":60`,
				`"sliding_window","max_count":5,"period":60`, `"approximate_window","max_count":5,"period":60`, `"quota","max_count":5,"every":"day"`,
			} {
				word, _, _ := strings.Cut(algorithm[1:], `"`)
				body := `{"key":"` + word + `","quantity":3,"at_most":true,"algorithm":` + algorithm + `}`
				for _, want := range []string{`"taken":3}`, `"taken":2}`} {
					h.post(t, "check", body).is(t, 200, want)
				}
				h.post(t, "check", body).is(t, 429, `"taken":0}`)
			}
			h.post(t, "check", `{"each":true,"checks":[{"limit":"api","key":"w","quantity":20,"at_most":true},{"limit":"api","key":"x"},{"limit":"api","key":"w","at_most":true}]}`).
				is(t, 429, `"checks":[{"allowed":true,"limit":16,"remaining":0,"retry_after_ms":-1,"reset_after_ms":32000,"taken":16,"near":true},`+
					`{"allowed":true,"limit":16,"remaining":15,"retry_after_ms":-1,"reset_after_ms":2000},{"allowed":false,"limit":16,"remaining":0,"retry_after_ms":2000,"reset_after_ms":32000,"taken":0}]`)
			if got, want := h.say(t, "CL.CHECK api w 0"), resptest.Ints(0, 16, 0, -1, 32); got != want {
				t.Errorf("a Redis client sees %q, want %q", got, want)
			}
		})
	}
}

// TestAtMostRefusals: what a call for at most some cannot be.
func TestAtMostRefusals(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	for _, tt := range []struct{ call, body, contains string }{
		{"check", `{"limit":"api","key":"u","quantity":0,"at_most":true}`, "quantity must be at least 1, got 0"},
		{"check", `{"limit":"api","key":"u","at_most":1}`, "at_most must be true or false"},
		{"check", `{"checks":[{"limit":"api","key":"u"},{"limit":"api","key":"v","at_most":true}]}`, `at_most needs \"each\": true`},
		{"check", `{"each":false,"checks":[{"limit":"api","key":"v","at_most":true}]}`, `at_most needs \"each\": true`},
		{"check", `{"each":true,"checks":[{"limit":"api","key":"v","at_most":"x"}]}`, "checks[0].at_most must be true or false"},
		{"check", `{"each":true,"at_most":true,"checks":[{"limit":"api","key":"v"}]}`, `unknown field \"at_most\"`},
		{"peek", `{"limit":"api","key":"u","at_most":true}`, `unknown field \"at_most\"`},
		{"debit", `{"limit":"api","key":"u","at_most":true}`, `unknown field \"at_most\"`},
		{"refund", `{"limit":"api","key":"u","at_most":true}`, `unknown field \"at_most\"`},
		{"reserve", `{"key":"u","max_burst":1,"count":1,"period":1,"ttl_ms":1,"at_most":true}`, `unknown field \"at_most\"`},
	} {
		h.post(t, tt.call, tt.body).is(t, 400, tt.contains)
	}
	for query, contains := range map[string]string{"quantity=0&at_most=true": "quantity must be at least 1 with at_most=true", "at_most=yes": "at_most must be true or false", "at_most=": "at_most must be true or false"} {
		h.send(t, "GET", "/v1/check/api?key=u&"+query, "").is(t, 400, contains)
	}
	if got, want := h.say(t, "CL.CHECK api u 0", "EXISTS api:u api:v"), resptest.Ints(0, 16, 16, -1, 0)+":0\r\n"; got != want {
		t.Errorf("then %q, want %q", got, want)
	}
}
