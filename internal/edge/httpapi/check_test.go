package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/edge/httpapi"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

const (
	sec       = commandstest.Sec
	unlimited = "9223372036854775807"
)

func withLimits(t testing.TB, o options) *harness {
	t.Helper()
	h := start(t, o)
	h.say(t, "CL.LIMIT SET api 15 30 60", "CL.LIMIT SET two FUNNEL 0 1 10 FIXEDWINDOW 5 3600", "CL.LIMIT SET month QUOTA 10 MONTH",
		"CL.LIMIT SET day QUOTA 10 DAY", "CL.LIMIT SET shadow 0 1 60 SHADOW", "CL.LIMIT OVERRIDE api mallory DENY", "CL.LIMIT OVERRIDE api monitor UNLIMITED")
	return h
}

// TestCheck answers and headers.
func TestCheck(t *testing.T) {
	t.Parallel()
	const denied = `"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"`
	for _, tt := range []struct {
		name, before, body string
		status             int
		contains           string
		policy, limit      string
		retryAfter         string
	}{
		{"a limit", "", `{"limit":"api","key":"u"}`, 200, `{"allowed":true,"limit":16,"remaining":15,"retry_after_ms":-1,"reset_after_ms":2000}`,
			`"api";q=16;w=32`, `"api";r=15;t=2`, ""},
		{"a quantity", "", `{"limit":"api","key":"u","quantity":16}`, 200, `"remaining":0,"retry_after_ms":-1,"reset_after_ms":32000`, `"api";q=16;w=32`, `"api";r=0;t=32`, ""},
		{"a look", "", `{"limit":"api","key":"u","quantity":0}`, 200, `"remaining":16`, `"api";q=16;w=32`, `"api";r=16;t=0`, ""},
		{"a denial", "CL.CHECK api u 16", `{"limit":"api","key":"u"}`, 429, `"violated-policies":["api"],"allowed":false,"limit":16,"remaining":0,"retry_after_ms":2000,"reset_after_ms":32000}`,
			`"api";q=16;w=32`, `"api";r=0;t=2`, "2"},
		{"never", "", `{"limit":"api","key":"u","quantity":17}`, 429, `"retry_after_ms":-1`, `"api";q=16;w=32`, `"api";r=16`, ""},
		{"deny", "", `{"limit":"api","key":"mallory"}`, 429, denied, `"api";q=0`, `"api";r=0`, ""},
		{"unlimited", "", `{"limit":"api","key":"monitor"}`, 200, `"limit":` + unlimited, "", "", ""},
		{"a shadow", "CL.CHECK shadow u", `{"limit":"shadow","key":"u"}`, 200, `"allowed":true,"limit":1,"remaining":0,"retry_after_ms":-1`, `"shadow";q=1;w=60`, `"shadow";r=0;t=60`, ""},
		{"rules", "", `{"limit":"two","key":"u"}`, 200, `"limit":1,"remaining":0`, `"two:1";q=1;w=10, "two:2";q=5;w=3600`, `"two:1";r=0;t=10, "two:2";r=4;t=3600`, ""},
		{"a denial by one rule", "CL.CHECK two u", `{"limit":"two","key":"u"}`, 429, `"violated-policies":["two:1"]`, `"two:1";q=1;w=10, "two:2";q=5;w=3600`, `"two:1";r=0;t=10`, "10"},
		{"a month", "", `{"limit":"month","key":"u"}`, 200, `"remaining":9`, `"month";q=10`, "*", ""},
		{"a day", "", `{"limit":"day","key":"u"}`, 200, `"remaining":9`, `"day";q=10;w=86400`, "*", ""},
		{"funnel", "", `{"key":"k","algorithm":"funnel","max_burst":15,"count":30,"period":"1m"}`, 200, `"remaining":15,"retry_after_ms":-1,"reset_after_ms":2000`,
			`"default";q=16;w=32`, `"default";r=15;t=2`, ""},
		{"funnel by capacity", "", `{"key":"k","algorithm":"funnel","capacity":16,"count":30,"period":60}`, 200, `"limit":16`, `"default";q=16;w=32`, "*", ""},
		{"token bucket", "", `{"key":"k","algorithm":"token_bucket","capacity":16,"refill":30,"period":"60"}`, 200, `"limit":16`, `"default";q=16;w=32`, "*", ""},
		{"fixed window", "CL.FIXEDWINDOW k 5 60 5", `{"key":"k","algorithm":"fixed_window","max_count":5,"period":60}`, 429, `"retry_after_ms":60000`, `"default";q=5;w=60`, `"default";r=0;t=60`, "60"},
		{"sliding window", "", `{"key":"k","algorithm":"sliding_window","max_count":5,"period":60}`, 200, `"remaining":4`, `"default";q=5;w=60`, "*", ""},
		{"approximate window", "", `{"key":"k","algorithm":"approximate_window","max_count":5,"period":60}`, 200, `"remaining":4`, `"default";q=5;w=60`, "*", ""},
		{"quota", "", `{"key":"k","algorithm":"quota","max_count":5,"every":"week","time_zone":"Europe/Berlin","start":"1"}`, 200, `"remaining":4`, `"default";q=5;w=604800`, "*", ""},
		{"quota since the epoch", "", `{"key":"k","algorithm":"quota","max_count":5,"every":"minute","epoch":true}`, 200, `"remaining":4`, `"default";q=5;w=60`, "*", ""},
		{"a large quota", "", `{"key":"k","algorithm":"fixed_window","max_count":` + unlimited + `,"period":1}`, 200, `"limit":` + unlimited, `"default";q=999999999999999;w=1`, "*", ""},
		{"escapes", "CL.THROTTLE \"\xc3\xa9\\n\xf0\x9f\x98\x80\" 15 30 60", `{"key":"\u00e9\n\ud83d\ude00","algorithm":"funnel","max_burst":15,"count":30,"period":60}`, 200, `"remaining":14`, "*", "*", ""},
		{"several", "", `{"checks":[{"limit":"api","key":"u"},{"key":"k","algorithm":"fixed_window","max_count":5,"period":60,"quantity":2}]}`, 200,
			`{"allowed":true,"checks":[{"allowed":true,"limit":16,"remaining":15,"retry_after_ms":-1,"reset_after_ms":2000},{"allowed":true,"limit":5,"remaining":3,"retry_after_ms":-1,"reset_after_ms":60000}]}`,
			`"api";q=16;w=32, "default";q=5;w=60`, `"api";r=15;t=2, "default";r=3;t=60`, ""},
		{"several, one denied", "CL.CHECK api u 16", `{"checks":[{"limit":"api","key":"u"},{"limit":"api","key":"v"}]}`, 429,
			`"checks":[{"allowed":false,"limit":16,"remaining":0,"retry_after_ms":2000,"reset_after_ms":32000},{"allowed":true,"limit":16,"remaining":16,`, `"api";q=16;w=32;pk=:C/6TXnDDIcfKOvx1zg0Mog==:, "api";q=16;w=32;pk=:TJRIXgwhrmxBzh3+e2v6zg==:`, `"api";r=0;t=2;pk=:C/6TXnDDIcfKOvx1zg0Mog==:`, "2"},
		{"each, one denied", "CL.CHECK api u 16", `{"each":true,"checks":[{"limit":"api","key":"v"},{"limit":"api","key":"u","quantity":2}]}`, 429,
			`"allowed":false,"limit":16,"remaining":0,"retry_after_ms":4000,"reset_after_ms":32000,"checks":[{"allowed":true,"limit":16,"remaining":15,`, "*", `"api";r=0;t=4;pk=:C/6TXnDDIcfKOvx1zg0Mog==:`, "4"},
		{"own limits", "", `{"checks":[{"key":"a","algorithm":"fixed_window","max_count":5,"period":60},{"limit":"api","key":"u"},{"key":"b","algorithm":"fixed_window","max_count":9,"period":60}]}`, 200, `"allowed":true`,
			`"default:1";q=5;w=60, "api";q=16;w=32, "default:3";q=9;w=60`, `"default:1";r=4;t=60, "api";r=15;t=2, "default:3";r=8;t=60`, ""},
		{"own limits, denied", "", `{"checks":[{"key":"a","algorithm":"fixed_window","max_count":5,"period":60},{"key":"b","algorithm":"fixed_window","max_count":9,"period":60,"quantity":10}]}`, 429,
			`"violated-policies":["default:2"]`, `"default:1";q=5;w=60, "default:2";q=9;w=60`, `"default:2";r=9`, ""},
		{"an own limit and one of its name", "CL.LIMIT SET default FIXEDWINDOW 3 60", `{"checks":[{"key":"a","algorithm":"fixed_window","max_count":5,"period":60},{"limit":"default","key":"a"}]}`, 200, `"allowed":true`,
			`"default:1";q=5;w=60, "default";q=3;w=60`, "*", ""},
		{"an own limit and a rule of its name", "CL.LIMIT SET default FIXEDWINDOW 3 60 FIXEDWINDOW 4 90", `{"checks":[{"key":"a","algorithm":"fixed_window","max_count":5,"period":60},{"limit":"default","key":"a"}]}`, 200, `"allowed":true`,
			`"default:1";q=5;w=60, "default:1";q=3;w=60;pk=:ypeBEsobvcr6wjGzmiPcTQ==:, "default:2";q=4;w=90`, "*", ""},
		{"several keys of rules", "", `{"checks":[{"limit":"two","key":"u"},{"limit":"two","key":"v"}]}`, 200, `"allowed":true`,
			`"two:1";q=1;w=10;pk=:C/6TXnDDIcfKOvx1zg0Mog==:, "two:2";q=5;w=3600;pk=:C/6TXnDDIcfKOvx1zg0Mog==:, "two:1";q=1;w=10;pk=:TJRIXgwhrmxBzh3+e2v6zg==:, "two:2";q=5;w=3600;pk=:TJRIXgwhrmxBzh3+e2v6zg==:`, "*", ""},
		{"two keys denied", "", `{"each":true,"checks":[{"limit":"api","key":"v","quantity":17},{"limit":"api","key":"u","quantity":17}]}`, 429,
			`"violated-policies":["api"]`, "*", `"api";r=16;pk=:TJRIXgwhrmxBzh3+e2v6zg==:, "api";r=16;pk=:C/6TXnDDIcfKOvx1zg0Mog==:`, ""},
		{"a pair twice", "", `{"checks":[{"limit":"api","key":"u"},{"limit":"api","key":"u"}]}`, 200, `"allowed":true`, `"api";q=16;w=32`, `"api";r=14;t=4`, ""},
		{"a pair twice, denied", "", `{"checks":[{"limit":"two","key":"u"},{"limit":"two","key":"u"}]}`, 429,
			`"violated-policies":["two:1"],"allowed":false,"limit":1,"remaining":0,"retry_after_ms":-1,"reset_after_ms":10000`, `"two:1";q=1;w=10, "two:2";q=5;w=3600`, `"two:1";r=0`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := withLimits(t, options{})
			if tt.before != "" {
				h.say(t, tt.before)
			}
			got := h.post(t, "check", tt.body).is(t, tt.status, tt.contains)
			if tt.policy != "*" {
				got.has(t, "RateLimit-Policy", tt.policy)
			}
			if tt.limit != "*" {
				got.has(t, "RateLimit", tt.limit)
			}
			got.has(t, "Retry-After", tt.retryAfter)
		})
	}
}

// TestNeverEarly: milliseconds are rounded up, and a retry after them is allowed.
func TestNeverEarly(t *testing.T) {
	t.Parallel()
	h := start(t, options{})
	const body = `{"key":"k","algorithm":"funnel","max_burst":0,"count":7,"period":1}` // 142,857,142 ns a unit
	h.post(t, "check", body).is(t, 200, `"reset_after_ms":143}`)
	h.post(t, "check", body).is(t, 429, `"retry_after_ms":143,`).has(t, "Retry-After", "1").has(t, "RateLimit", `"default";r=0;t=1`)
	h.Clock.Advance(142 * sec / 1000)
	h.post(t, "check", body).is(t, 429, `"retry_after_ms":1,`)
	h.Clock.Advance(sec / 1000)
	h.post(t, "check", body).is(t, 200, `"allowed":true`)
}

// TestSharedState: Redis clients and HTTP see one state.
func TestSharedState(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	h.post(t, "check", `{"limit":"api","key":"u","quantity":3}`)
	h.post(t, "check", `{"key":"k","algorithm":"token_bucket","capacity":5,"refill":1,"period":60,"quantity":2}`)
	if got, want := h.say(t, "CL.CHECK api u 0", "CL.THROTTLE k 4 1 60 0"), resptest.Ints(0, 16, 13, -1, 6)+resptest.Ints(0, 5, 3, -1, 120); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHeaders of every kind.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"draft", "legacy", "both", "none"} {
		headers, ok := httpapi.HeadersOf(word)
		if !ok || headers.String() != word {
			t.Fatal(word)
		}
		h := withLimits(t, options{api: func(c *httpapi.Config) { c.Headers = headers }})
		h.say(t, "CL.CHECK api full 16")
		first, last := h.post(t, "check", `{"limit":"api","key":"u"}`), h.post(t, "check", `{"limit":"api","key":"full","quantity":2}`)
		draft, legacy := word == "draft" || word == "both", word == "legacy" || word == "both"
		when := func(on bool, text string) string {
			if on {
				return text
			}
			return ""
		}
		first.has(t, "RateLimit", when(draft, `"api";r=15;t=2`)).has(t, "X-RateLimit-Limit", when(legacy, "16")).has(t, "X-RateLimit-Remaining", when(legacy, "15")).has(t, "X-RateLimit-Reset", when(legacy, "2"))
		last.has(t, "RateLimit", when(draft, `"api";r=0;t=4`)).has(t, "X-RateLimit-Reset", when(legacy, "4")).has(t, "Retry-After", "4")
	}
	if _, ok := httpapi.HeadersOf("all"); ok {
		t.Error("there is no such word")
	}
}

// TestRefusals of bodies name what is wrong.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	const funnel = `{"key":"k","algorithm":"funnel","max_burst":1,"count":1,"period":1`
	for _, tt := range []struct {
		call, body string
		status     int
		contains   string
	}{
		{"check", ``, 400, "must be a JSON object"},
		{"check", `[]`, 400, "must be a JSON object"},
		{"check", `{"limit":"api","key":"u"} {}`, 400, "must be a JSON object: invalid character"},
		{"check", `{"limit":"api","key":"u",}`, 400, "must be a JSON object: invalid character"},
		{"check", "{\"limit\":\"api\",\"key\":\"\xff\"}", 400, "not Unicode"},
		{"check", `{"limit":"api","key":"\ud800"}`, 400, "not Unicode"},
		{"check", `{"limit":"api","key":"\udc00\ud800"}`, 400, "not Unicode"},
		{"check", `{"limit":"api"}`, 400, `the field \"key\" is missing`},
		{"check", `{"key":"u"}`, 400, "algorithm must be funnel"},
		{"check", `{"key":"u","algorithm":"gcra"}`, 400, "algorithm must be funnel"},
		{"check", `{"limit":"api","key":"u","key":"v"}`, 400, `the field \"key\" is there twice`},
		{"check", `{"limit":"api","key":7}`, 400, "key must be text"},
		{"check", `{"limit":"api","key":null}`, 400, "key must be text"},
		{"check", `{"limit":null,"key":"u"}`, 400, "limit must be text"},
		{"check", `{"limit":"api","key":"u","Quantity":1}`, 400, `unknown field \"Quantity\"`},
		{"check", `{"limit":"api","key":"u","quantity":1.5}`, 400, "quantity must be an integer"},
		{"check", `{"limit":"api","key":"u","quantity":1e2}`, 400, "quantity must be an integer"},
		{"check", `{"limit":"api","key":"u","quantity":"1"}`, 400, "quantity must be an integer"},
		{"check", `{"limit":"api","key":"u","quantity":9223372036854775808}`, 400, "quantity must be an integer"},
		{"check", `{"limit":"api","key":"u","quantity":-1}`, 400, "quantity must be at least 0"},
		{"check", `{"limit":"api","key":"u","max_burst":1}`, 400, `unknown field \"max_burst\"`},
		{"check", `{"limit":"api","key":"u","each":true}`, 400, `unknown field \"each\"`},
		{"check", `{"limit":"nosuch","key":"u"}`, 404, `no such limit \"nosuch\"; there are api, day, month, shadow, two`},
		{"check", `{"limit":"nosuch","key":"` + strings.Repeat("k", 5000) + `"}`, 404, `no such limit`},
		{"check", `{"limit":"api","key":"` + strings.Repeat("k", 5000) + `"}`, 400, "longer than 4096 bytes"},
		{"check", funnel + `,"capacity":1}`, 400, `give max_burst or capacity, not both; capacity is all that fits`},
		{"check", strings.Replace(funnel, `"count":1`, `"count":-1`, 1) + `}`, 400, "count must be at least 1, got -1"},
		{"check", strings.Replace(funnel, `"count":1`, `"count":0`, 1) + `}`, 400, "count must be at least 1, got 0"},
		{"check", strings.Replace(funnel, `"count":1`, `"count":9223372036854775807`, 1) + `}`, 400, "count must be at most 1000000000 for each second of the period, got 9223372036854775807 in 1 s"},
		{"check", strings.Replace(funnel, `"period":1`, `"period":"1.5s"`, 1) + `}`, 400, "period must be whole seconds"},
		{"check", `{"key":"k","algorithm":"funnel","capacity":0,"count":1,"period":1}`, 400, "capacity must be at least 1, got 0"},
		{"check", `{"key":"k","algorithm":"token_bucket","capacity":1,"refill":-1,"period":1}`, 400, "refill must be at least 1, got -1"},
		{"check", `{"key":"k","algorithm":"sliding_window","max_count":4097,"period":1}`, 400, "max_count of a sliding_window"},
		{"check", `{"key":"k","algorithm":"quota","max_count":1,"every":"Day"}`, 400, "every must be second"},
		{"check", `{"key":"k","algorithm":"quota","max_count":1,"every":"day","time_zone":"Mars/Base"}`, 400, "unknown time zone"},
		{"check", `{"key":"k","algorithm":"quota","max_count":1,"every":"week","start":"9"}`, 400, "start"},
		{"check", `{"key":"k","algorithm":"funnel","name":"n","max_burst":1,"count":1,"period":1}`, 400, `unknown field \"name\"`},
		{"check", `{"checks":[]}`, 400, "checks must be an array of 1 to 32"},
		{"check", `{"checks":[` + strings.TrimSuffix(strings.Repeat(`{"limit":"api","key":"u"},`, 33), ",") + `]}`, 400, "checks must be an array of 1 to 32"},
		{"check", `{"checks":[1]}`, 400, "checks[0] must be an object"},
		{"check", `{"checks":[{"limit":"api","key":"u"},{"limit":"api","key":"u","x":1}]}`, 400, `unknown field \"checks[1].x\"`},
		{"check", `{"checks":[{"limit":"api","key":"u"},{"limit":"nosuch","key":"u"}]}`, 404, `no such limit \"nosuch\"`},
		{"check", `{"checks":[{"limit":"api","key":"u"}],"key":"u"}`, 400, `unknown field \"key\"`},
		{"check", `{"checks":[{"limit":"api","key":"u"}],"each":1}`, 400, "each must be true or false"},
		{"check", `{"key":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, 400, "nested too deeply"},
		{"check", `{"` + strings.Repeat("k", 100) + `":[1]}`, 400, "unknown field"},
		{"check", `{"key":"` + strings.Repeat("k", 64<<10) + `"}`, 413, "longer than 65536 bytes"},
		{"peek", `{"limit":"api","key":"u","quantity":1}`, 400, `unknown field \"quantity\"`},
		{"debit", `{"limit":"api","key":"u","quantity":0}`, 400, "quantity must be at least 1"},
		{"debit", `{"key":"k","algorithm":"sliding_window","max_count":5,"period":60}`, 400, "cannot be debited"},
		{"refund", `{"limit":"api","key":"u","quantity":-1}`, 400, "quantity must be at least 1"},
		{"reset", `{"limit":"nosuch","key":"u"}`, 404, `no such limit \"nosuch\"`},
		{"reset", `{"limit":"","key":"u"}`, 404, "there are api"},
		{"reset", `{"limit":"api"}`, 400, `the field \"key\" is missing`},
		{"reserve", `{"limit":"api","key":"u","ttl_ms":1}`, 400, "limit cannot be given here"},
		{"reserve", `{"key":"u","max_burst":1,"count":1,"period":1}`, 400, `\"ttl_ms\" is missing`},
		{"reserve", `{"key":"u","max_burst":1,"count":1,"period":1,"ttl_ms":0}`, 400, "ttl_ms must be at least 1 ms"},
		{"reserve", `{"key":"u","algorithm":"quota","max_burst":1,"count":1,"period":1,"ttl_ms":0}`, 400, "algorithm must be funnel"},
		{"commit", `{"key":"u","id":"x"}`, 400, "id must be what CL.RESERVE has returned"},
		{"commit", `{"key":"u","id":"1","late":1}`, 400, "late must be an object"},
		{"commit", `{"key":"u","id":"1","late":{"max_burst":1,"count":1,"period":1,"x":1}}`, 400, `unknown field \"late.x\"`},
		{"acquire", `{"key":"u","max":0,"lease_ms":1}`, 400, "max must be 1 to 4096"},
		{"release", `{"key":"u","token":""}`, 400, "token must have 1 to 64 bytes"},
	} {
		h.post(t, tt.call, tt.body).is(t, tt.status, tt.contains)
	}
	h.say(t, "CL.FIXEDWINDOW w 5 60")
	h.post(t, "check", strings.Replace(funnel, `"k"`, `"w"`, 1)+`}`).is(t, 400, "WRONGTYPE")
}

// TestOtherCalls of limiters of each algorithm.
func TestOtherCalls(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	for i, of := range []string{
		`"limit":"api"`, `"algorithm":"funnel","capacity":16,"count":30,"period":60`, `"algorithm":"token_bucket","capacity":16,"refill":30,"period":60`,
		`"algorithm":"fixed_window","max_count":16,"period":60`, `"algorithm":"approximate_window","max_count":16,"period":60`, `"algorithm":"quota","max_count":16,"every":"year"`,
		`"algorithm":"sliding_window","max_count":16,"period":60`,
	} {
		body := func(more string) string { return fmt.Sprintf(`{"key":"k%d",%s%s}`, i, of, more) }
		left := 16
		if !strings.Contains(of, "sliding") {
			h.post(t, "debit", body(`,"quantity":20`)).is(t, 200, `"allowed":false,"limit":16,"remaining":0,`).has(t, "Retry-After", "")
			h.post(t, "peek", body("")).is(t, 200, `"remaining":0,`)
			h.post(t, "refund", body(`,"quantity":6`)).is(t, 200, `"remaining":2,`)
			left = 2
		}
		h.post(t, "check", body("")).is(t, 200, fmt.Sprintf(`"remaining":%d,`, left-1))
		h.post(t, "refund", body("")).is(t, 200, fmt.Sprintf(`"remaining":%d,`, left))
		reset := fmt.Sprintf(`{"key":"k%d"}`, i)
		if i == 0 {
			reset = `{"key":"k0","limit":"api"}`
		}
		h.post(t, "check", body("")).is(t, 200, "")
		h.post(t, "reset", reset).is(t, 200, `{"deleted":true}`)
		h.post(t, "reset", reset).is(t, 200, `{"deleted":false}`)
		h.post(t, "peek", body("")).is(t, 200, `"remaining":16,`).has(t, "X-RateLimit-Limit", "")
	}
}

func TestReservations(t *testing.T) {
	t.Parallel()
	h := start(t, options{})
	const funnel = `"max_burst":15,"count":30,"period":"1m"`
	reserve := `{"key":"k",` + funnel + `,"quantity":10,"ttl_ms":5000}`
	got := h.post(t, "reserve", reserve).is(t, 200, `{"allowed":true,"limit":16,"remaining":6,"retry_after_ms":-1,"reset_after_ms":20000,"id":"`).has(t, "RateLimit", `"default";r=6;t=20`)
	h.post(t, "reserve", reserve).is(t, 429, `"retry_after_ms":8000`).has(t, "Retry-After", "8").has(t, "RateLimit-Policy", `"default";q=16;w=32`)
	commit := fmt.Sprintf(`{"key":"k","id":%q,"quantity":4}`, got.member("id"))
	h.post(t, "commit", commit).is(t, 200, `{"committed":true,"late":false}`)
	h.post(t, "commit", commit).is(t, 200, `{"committed":false,"late":false}`)
	got = h.post(t, "reserve", strings.Replace(reserve, `"max_burst":15`, `"algorithm":"funnel","capacity":16`, 1)).is(t, 200, "")
	h.Clock.Advance(6 * sec)
	h.post(t, "commit", fmt.Sprintf(`{"key":"k","id":%q,"late":{%s}}`, got.member("id"), funnel)).is(t, 200, `{"committed":true,"late":true}`)
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	h := start(t, options{})
	h.post(t, "acquire", `{"key":"c","max":1,"lease_ms":1500,"token":"me"}`).is(t, 200, `"limit":1,"remaining":0,"retry_after_ms":-1,"reset_after_ms":1500,"token":"me"`).
		has(t, "RateLimit-Policy", `"default";q=1;qu="concurrent-requests"`)
	h.post(t, "acquire", `{"key":"c","max":1,"lease_ms":1500}`).is(t, 429, `"retry_after_ms":1500`).has(t, "Retry-After", "2")
	h.post(t, "acquire", `{"key":"c","max":1,"lease_ms":9000,"token":"me"}`).is(t, 200, `"reset_after_ms":9000`)
	h.post(t, "release", `{"key":"c","token":"me"}`).is(t, 200, `{"released":true}`)
	h.post(t, "release", `{"key":"c","token":"me"}`).is(t, 200, `{"released":false}`)
	if got := h.post(t, "acquire", `{"key":"c","max":1,"lease_ms":1500}`); got.member("token") == "" {
		t.Errorf("no token: %s", got.body)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	h := withLimits(t, options{})
	get := func(path string) response { t.Helper(); return h.send(t, "GET", "/v1/"+path, "") }
	get("limits").is(t, 200, `{"limits":["api","day","month","shadow","two"]}`)
	get("limits/api").is(t, 200, `"windows":[[15,30,60]],"shadow":false,"source":"command"`)
	get("limits/two").is(t, 200, `"rules":[{"rule":"FUNNEL 0 1 10",`)
	get("limits/nosuch").is(t, 404, "there are api")
	get("limits/api/explain?key=u").is(t, 200, `{"override":null,"rules":[{"rule":"FUNNEL 15 30 60","allowed":true,"limit":16,"remaining":15,"retry_after_seconds":-1,"reset_after_seconds":2}]}`)
	get("limits/api/explain?key=mallory").is(t, 200, `"override":"command: DENY","rules":[{"rule":"DENY","allowed":false`)
	get("limits/two/explain?key=u").is(t, 200, `{"rule":"FIXEDWINDOW 5 3600",`)
	get("limits/nosuch/explain?key=u").is(t, 404, "there are api")
	get("limits/api/explain").is(t, 400, "key is missing")
	get("limits/api/explain?key=u&x=1").is(t, 400, "unknown parameter")
	get("limits?x=1").is(t, 400, "no query")
	get("limits/api?x=1").is(t, 400, "no query")
	get("openapi.json?x=1").is(t, 400, "no query")
	get("limits/").is(t, 404, "no such path")
	get("limits//explain?key=u").is(t, 404, "no such limit")
	none := start(t, options{})
	none.send(t, "GET", "/v1/limits/x", "").is(t, 404, "there are none; define it")
}

// TestPeriods have days and weeks as in a file of limits.
func TestPeriods(t *testing.T) {
	t.Parallel()
	h := start(t, options{})
	for period, ms := range map[string]string{`"1d"`: "86400000", `"1w"`: "604800000", `"1d12h"`: "129600000", `86400`: "86400000", `"60"`: "60000"} {
		h.post(t, "check", `{"key":"`+ms+`-`+fmt.Sprint(len(period))+`","algorithm":"fixed_window","max_count":5,"period":`+period+`}`).is(t, 200, `"reset_after_ms":`+ms)
	}
}
