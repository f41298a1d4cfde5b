package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// budgets is a harness with limits, which holds by HTTP.
type budgets struct {
	*harness
	*testing.T
}

func newBudgets(t *testing.T, o options) *budgets {
	t.Helper()
	h := start(t, o)
	h.say(t, "CL.LIMIT SET org FIXEDWINDOW 100000 3600", "CL.LIMIT SET user FUNNEL 99 1 10", "CL.LIMIT SET spend FIXEDWINDOW 50000000 3600 UNIT usd",
		"CL.LIMIT SET exact SLIDINGWINDOW 100 3600", "CL.LIMIT SET shadow FIXEDWINDOW 100 3600 SHADOW", "CL.LIMIT SET share FIXEDWINDOW 100 3600 MAXRESERVATION 0.5",
		"CL.LIMIT SET two FIXEDWINDOW 100 3600 FIXEDWINDOW 150 86400")
	return &budgets{h, t}
}

// use writes pairs, name:key=units each, as checks.
func use(all ...string) string {
	var checks []string
	for _, one := range all {
		pair, units, has := strings.Cut(one, "=")
		name, key, _ := strings.Cut(pair, ":")
		check := fmt.Sprintf(`{"limit":%q,"key":%q`, name, key)
		if has {
			check += `,"units":` + units
		}
		checks = append(checks, check+"}")
	}
	return `"checks":[` + strings.Join(checks, ",") + "]"
}

func (b *budgets) do(call, more string, all ...string) response {
	b.Helper()
	body := "{" + use(all...)
	if more != "" {
		body += "," + more
	}
	return b.post(b.T, call, body+"}")
}

// left checks the units that are left of keys, name:key=units.
func (b *budgets) left(all ...string) {
	b.Helper()
	for _, one := range all {
		pair, units, _ := strings.Cut(one, "=")
		name, key, _ := strings.Cut(pair, ":")
		got := resptest.ParseAll(b.T, b.say(b.T, "CL.CHECK "+name+" "+key+" 0"))[0]
		if got.Kind != '*' || fmt.Sprint(got.Elements[2].Number) != units {
			b.Errorf("%s: %+v", one, got)
		}
	}
}

// hold holds for a minute, and returns the id.
func (b *budgets) hold(more string, all ...string) string {
	b.Helper()
	if more != "" {
		more = "," + more
	}
	got := b.do("reserve", `"ttl_ms":60000`+more, all...).is(b.T, 200, `"allowed":true,"id":"`)
	return got.member("id")
}

const ended = `{"committed":true,"late":false}`

// TestBudgets: HTTP holds, extends and settles as RESP does.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]func(*server.Config){"loops": nil, "net/http": goroutines} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBudgets(t, options{server: by})
			got := b.do("reserve", `"ttl_ms":60000`, "org:acme=1000", "user:u=30")
			got.is(t, 200, `,"checks":[{"name":"org","key":"acme","allowed":true,"limit":100000,"remaining":99000,"retry_after_ms":-1,"reset_after_ms":3600000},`+
				`{"name":"user","key":"u","allowed":true,"limit":100,"remaining":70,"retry_after_ms":-1,"reset_after_ms":300000}]}`).
				has(t, "RateLimit", `"org";r=99000;t=3600, "user";r=70;t=300`).has(t, "X-RateLimit-Near", "")
			id := `"id":"` + got.member("id") + `"`
			b.Clock.Advance(50 * sec)
			b.do("extend", id+`,"ttl_ms":60000`, "user:u", "org:acme").is(t, 200, `{"extended":true}`)
			b.Clock.Advance(50 * sec)
			b.left("org:acme=99000", "user:u=80") // ten units have leaked
			b.do("commit", id, "user:u=10", "org:acme=1500").is(t, 200, ended)
			b.left("org:acme=98500", "user:u=100")
			for range 2 {
				b.do("commit", id, "user:u=10", "org:acme=1500").is(t, 200, `{"committed":false,"late":false}`)
				b.do("extend", id+`,"ttl_ms":60000`, "user:u", "org:acme").is(t, 200, `{"extended":false}`)
			}
			id = `"id":"` + b.hold(`"charge":true`, "org:acme=500") + `"`
			b.Clock.Advance(int64(time.Minute))
			b.left("org:acme=98000")
			b.do("commit", id, "org:acme=100").is(t, 200, `{"committed":true,"late":true}`)
			b.left("org:acme=98400")
		})
	}
}

// TestBudgetDenials say which limit, whose key and when.
func TestBudgetDenials(t *testing.T) {
	t.Parallel()
	b := newBudgets(t, options{})
	b.say(t, "CL.LIMIT OVERRIDE org mallory DENY", "CL.LIMIT OVERRIDE org vip UNLIMITED", "CL.LIMIT OVERRIDE org big FIXEDWINDOW 200000 3600")
	b.hold("", "org:acme=99500", "user:full=100")
	for _, tt := range []struct {
		detail string
		uses   []string
	}{
		{`the limit "org" has 500 of 100000 units left for "acme"; try again in 3600 s`, []string{"user:u=1", "org:acme=1000"}},
		{`the limit "user" has 0 of 100 units left for "full"; try again in 10 s`, []string{"org:acme=1", "user:full=1"}},
		{`the limit "org" has 500 of 100000 units left for "acme"; this many are never allowed at once`, []string{"org:acme=100001", "user:full=1"}},
		{`the limit "org" allows nothing for "mallory"`, []string{"user:u=1", "org:mallory=1"}},
		{`the limit "spend" has $50.00 of $50.00 left for "a\"b"; this much is never allowed at once`, []string{`spend:a"b=50000001`}},
		{`the limit "org" has 200000 of 200000 units left for "big"; this many are never allowed at once`, []string{"org:big=200001", "org:vip=9223372036854775807"}},
		{`the limit "two" has 100 of 100 units left for "k"; this many are never allowed at once`, []string{"two:k=101"}},
	} {
		got := b.do("reserve", `"ttl_ms":60000,"id":"mine"`, tt.uses...).is(t, 429, `"allowed":false,"limit":`)
		if quoted := strings.NewReplacer(`\"`, `\\\"`, `"`, `\"`).Replace(tt.detail); got.member("status") != "429" || !strings.Contains(got.body, `"detail":"`+quoted+`"`) {
			t.Errorf("%s: %s", tt.detail, got.body)
		}
	}
	b.do("commit", `"id":"mine"`, "user:u=1", "org:acme=1000").is(t, 200, `"committed":false`)
	b.left("org:acme=500", "user:u=100", "org:big=200000")
	b.do("reserve", `"ttl_ms":1000`, "user:u=3", "org:acme=1000", "user:full=1").
		has(t, "Retry-After", "3600").is(t, 429, `"violated-policies":["org","user"]`).is(t, 429, `"checks":[{"name":"user","key":"u","allowed":true,"limit":100,"remaining":100,`)
}

// TestBudgetErrors are problems.
func TestBudgetErrors(t *testing.T) {
	t.Parallel()
	b := newBudgets(t, options{})
	b.hold(`"id":"mine"`, "org:acme=10", "user:u=1")
	for _, tt := range []struct {
		call, body string
		status     int
		detail     string
	}{
		{"reserve", `{"checks":[],"ttl_ms":1}`, 400, "checks must be an array of 1 to 32 objects"},
		{"reserve", `{"checks":1,"ttl_ms":1}`, 400, "checks must be an array of 1 to 32 objects"},
		{"reserve", `{"checks":[1],"ttl_ms":1}`, 400, "checks[0] must be an object"},
		{"reserve", `{"checks":[` + strings.TrimSuffix(strings.Repeat("{},", 33), ",") + `],"ttl_ms":1}`, 400, "checks must be an array of 1 to 32 objects"},
		{"reserve", `{` + use("org:a=1") + `}`, 400, `\"ttl_ms\" is missing`},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":0}`, 400, "ttl_ms must be at least 1 ms, got 0"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":86400001}`, 400, "ttl_ms must be at most 24h, got 86400001"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":9223372036854775807}`, 400, "ttl_ms is more than"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":"1m"}`, 400, "ttl_ms must be an integer"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":1,"quantity":1}`, 400, `unknown field \"quantity\"`},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":1,"each":true}`, 400, `unknown field \"each\"`},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":1,"charge":1}`, 400, "charge must be true or false"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":1,"id":""}`, 400, "id must have 1 to 32 bytes"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":1,"id":7}`, 400, "id must be text"},
		{"reserve", `{` + use("org:a=1") + `,"ttl_ms":1,"id":"` + strings.Repeat("i", 33) + `"}`, 400, "id must have 1 to 32 bytes"},
		{"reserve", `{` + use("org:a=0") + `,"ttl_ms":1}`, 400, "units must be at least 1, got 0"},
		{"reserve", `{` + use("org:a=-1") + `,"ttl_ms":1}`, 400, "units must be at least 1, got -1"},
		{"reserve", `{` + use("spend:a=0.02") + `,"ttl_ms":1}`, 400, "checks[0].units must be an integer of 64 bits"},
		{"reserve", `{` + use(`spend:a="$0.02"`) + `,"ttl_ms":1}`, 400, "checks[0].units must be an integer of 64 bits"},
		{"reserve", `{` + use("org:a=9223372036854775808") + `,"ttl_ms":1}`, 400, "checks[0].units must be an integer of 64 bits"},
		{"reserve", `{` + use("org:a=1", "org:b") + `,"ttl_ms":1}`, 400, `\"checks[1].units\" is missing`},
		{"reserve", `{"checks":[{"key":"a","units":1}],"ttl_ms":1}`, 400, `\"checks[0].limit\" is missing`},
		{"reserve", `{"checks":[{"limit":"org","units":1}],"ttl_ms":1}`, 400, `\"checks[0].key\" is missing`},
		{"reserve", `{` + use(":a=1") + `,"ttl_ms":1}`, 400, "checks[0].limit must be the name of a limit"},
		{"reserve", `{"checks":[{"limit":"org","key":"a","units":1,"quantity":1}],"ttl_ms":1}`, 400, `unknown field \"checks[0].quantity\"`},
		{"reserve", `{` + use("org:a=1", "user:a=1", "org:a=2") + `,"ttl_ms":1}`, 400, "the pair of 'org' and 'a' is given twice; give it once, with all its units"},
		{"reserve", `{` + use("org:a=1", "nosuch:a=1") + `,"ttl_ms":1}`, 404, `no such limit \"nosuch\"; there are exact, org,`},
		{"reserve", `{` + use("exact:a=1") + `,"ttl_ms":1}`, 400, "the limit 'exact' has an exact sliding window for this key, which can hold nothing"},
		{"reserve", `{` + use("org:"+strings.Repeat("k", commandstest.MaxKeyBytes)+"=1") + `,"ttl_ms":1}`, 400, "key is longer than"},
		{"reserve", `{` + use("org:acme=11", "user:u=1") + `,"ttl_ms":60000,"id":"mine"}`, 400, "the id is another hold's, of other arguments"},
		{"commit", `{` + use("org:acme=11", "user:u=1") + `}`, 400, `\"id\" is missing`},
		{"commit", `{` + use("org:acme=11", "user:u=1") + `,"id":""}`, 400, "id must have 1 to 32 bytes"},
		{"commit", `{` + use("org:acme=-1", "user:u=1") + `,"id":"mine"}`, 400, "units must be at least 0, got -1"},
		{"commit", `{` + use("org:acme=1") + `,"id":"mine"}`, 400, "the pairs are not those that the hold was made for"},
		{"commit", `{` + use("org:acme=1", "nosuch:u=1") + `,"id":"mine"}`, 400, "the pairs are not those that the hold was made for"},
		{"commit", `{` + use("nosuch:u=1") + `,"id":"mine"}`, 404, `no such limit \"nosuch\"`},
		{"commit", `{` + use("org:acme=1") + `,"id":"mine","ttl_ms":1}`, 400, `unknown field \"ttl_ms\"`},
		{"extend", `{"id":"mine","ttl_ms":1}`, 400, "checks must be an array"},
		{"extend", `{` + use("org:acme") + `,"id":"mine"}`, 400, `\"ttl_ms\" is missing`},
		{"extend", `{` + use("org:acme") + `,"id":"mine","ttl_ms":86400001}`, 400, "at most 24h"},
		{"extend", `{` + use("org:acme") + `,"id":"mine","ttl_ms":1}`, 400, "the pairs are not those"},
		{"extend", `{` + use("org:acme=1") + `,"id":"mine","ttl_ms":1}`, 400, `unknown field \"checks[0].units\"`},
		{"extend", `{` + use("nosuch:acme") + `,"id":"mine","ttl_ms":1}`, 404, "no such limit"},
	} {
		b.post(t, tt.call, tt.body).is(t, tt.status, tt.detail)
	}
	b.left("org:acme=99990", "org:a=100000")
	b.Clock.Advance(int64(time.Minute))
	b.do("reserve", `"ttl_ms":60000,"id":"mine"`, "org:acme=10", "user:u=1").is(t, 400, "the id is a hold's whose time is over; commit it, or give another ID")
	b.say(t, "SET org:text x")
	b.do("reserve", `"ttl_ms":60000`, "org:acme=10", "org:text=1").is(t, 400, "WRONGTYPE")
	b.left("org:acme=100000")
}

// TestBudgetsOfUsers: the calls are those of CL.MRESERVE, CL.MCOMMIT and CL.MEXTEND to users' rights, counters,
// MONITOR and SLOWLOG.
func TestBudgetsOfUsers(t *testing.T) {
	t.Parallel()
	b := newBudgets(t, options{users: anyone + "user app on nopass ~org:* +cl.mreserve +cl.mcommit\n"})
	monitor := b.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	b.say(t, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 100")
	send := func(call, body string) response {
		t.Helper()
		return b.send(t, "POST", "/v1/"+call, body, "X-Cellserver-Token: "+token)
	}
	send("reserve", `{`+use("org:a=5", "org:b=6")+`,"ttl_ms":60000,"charge":true,"id":"mine"}`).is(t, 200, `"id":"mine"`)
	send("reserve", `{`+use("org:a=5", "user:b=6")+`,"ttl_ms":60000}`).is(t, 403, "no permissions to access one of the keys")
	send("reserve", `{`+use("org:a=5", "nosuch:b=6")+`,"ttl_ms":60000}`).is(t, 403, "no permissions to access one of the keys")
	send("reserve", `{`+use("org:a=5")+`,"ttl_ms":0}`).is(t, 400, "ttl_ms")
	send("extend", `{`+use("org:a", "org:b")+`,"ttl_ms":60000,"id":"mine"}`).is(t, 403, "no permissions to run the 'cl.mextend' command")
	send("commit", `{`+use("org:a=1", "org:b=2")+`,"id":"mine"}`).is(t, 200, ended)
	b.left("org:a=99999", "org:b=99998")
	calls := b.Engine.Records.Stats().Calls
	for name, want := range map[string]uint64{"cl.mreserve": 2, "cl.mextend": 0, "cl.mcommit": 1} {
		if calls[name] != want {
			t.Errorf("%s: %d calls", name, calls[name])
		}
	}
	slow := b.say(t, "SLOWLOG GET 100")
	lines, _, _ := commandstest.Feed(t, monitor, "")
	for _, words := range []string{"CL.MRESERVE 2 org a 5 org b 6 TTL 60000 CHARGE ID mine", "CL.MCOMMIT mine 2 org a 1 org b 2"} {
		if want := `"` + strings.ReplaceAll(words, " ", `" "`) + `"`; !strings.Contains(lines, want) {
			t.Errorf("MONITOR has no %s: %s", want, lines)
		}
		if name, _, _ := strings.Cut(words, " "); !strings.Contains(slow, name) {
			t.Errorf("SLOWLOG has no %s: %s", name, slow)
		}
	}
	got := resptest.ParseAll(t, b.say(t, "CL.LIMIT GET org"))[0]
	if n := [...]int64{got.Field("allowed").Number, got.Field("holds").Number, got.Field("holds_settled").Number}; n != [...]int64{2, 2, 2} {
		t.Errorf("CL.LIMIT GET has %v", n)
	}
}

// TestBudgetsOfBothProtocols: a hold is the same to both.
func TestBudgetsOfBothProtocols(t *testing.T) {
	t.Parallel()
	b := newBudgets(t, options{})
	b.hold(`"id":"a"`, "org:k=100", "user:k=10")
	again := b.say(t, "CL.MRESERVE 2 user k 10 org k 100 ID a TTL 60s")
	if !strings.Contains(again, "\r\n$1\r\na\r\n") {
		t.Errorf("again by RESP: %q", again)
	}
	b.left("org:k=99900", "user:k=90")
	b.say(t, "CL.MEXTEND a 2m 2 org k user k")
	b.Clock.Advance(int64(time.Minute))
	if got := b.say(t, "CL.MCOMMIT a 2 user k 5 org k 50"); got != ":1\r\n" {
		t.Errorf("settled by RESP: %q", got)
	}
	b.left("org:k=99950")
	b.say(t, "CL.MRESERVE 2 user k 10 org k 100 TTL 60000 CHARGE ID b")
	b.do("reserve", `"ttl_ms":60000,"id":"b"`, "org:k=100", "user:k=10").is(t, 400, "the id is another hold's")
	b.hold(`"id":"b","charge":true`, "org:k=100", "user:k=10")
	b.do("extend", `"ttl_ms":1000,"id":"b"`, "org:k", "user:k").is(t, 200, `{"extended":true}`)
	b.Clock.Advance(int64(time.Minute))
	b.do("commit", `"id":"b"`, "org:k=0", "user:k=0").is(t, 200, `{"committed":true,"late":true}`)
	b.left("org:k=99950")
}

// TestBudgetsOfFullKeys: a key has at most as many holds as by RESP, and what a call holds is bounded.
func TestBudgetsOfFullKeys(t *testing.T) {
	t.Parallel()
	b := newBudgets(t, options{})
	b.say(t, "CL.LIMIT SET large FIXEDWINDOW 1000000 3600")
	for i := range 4096 {
		b.say(t, fmt.Sprintf("CL.MRESERVE 1 large k 1 TTL 1h ID id%d", i))
	}
	b.do("reserve", `"ttl_ms":1000`, "org:k=1", "large:k=1").is(t, 503, "TOOMANYHOLDS the key 'large:k' has as many open holds as it may; commit some")
	b.left("org:k=100000", "large:k=995904")
	b.do("commit", `"id":"id7"`, "large:k=0").is(t, 200, ended)
	b.hold("", "org:k=1", "large:k=1")
	var most []string
	for i := range 32 {
		most = append(most, fmt.Sprintf("org:%d=1", i))
	}
	b.hold("", most...)
	b.do("reserve", `"ttl_ms":1000,"id":"`+strings.Repeat("i", 64<<10)+`"`, "org:k=1").is(t, 413, "longer than 65536 bytes")
	b.hold(`"id":"é\u0000\n"`, "share:k=90")
	b.left("share:k=50") // max_reservation is half
	b.do("commit", `"id":"é\u0000\n"`, "share:k=90").is(t, 200, ended)
	b.left("share:k=10")
}
