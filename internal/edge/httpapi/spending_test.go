package httpapi_test

import (
	"log/slog"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/commands"
	"cellserver/internal/store"
)

// TestSpending: a limit has its spending by day, and who spent most of the keys that the caller may look at.
func TestSpending(t *testing.T) {
	t.Parallel()
	h := start(t, options{
		users: "user default on nopass ~* &* +@all\nuser app on nopass ~org:a* +cl.limit|get +cl.limit|explain\n",
		engine: []func(*commands.Config){func(c *commands.Config) {
			of := c.Store.(store.Spender)
			c.NamedLimits = namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler), Now: c.Now, Spent: of.Spent})
			of.SpendBy(c.NamedLimits.SpentAt)
		}},
	})
	const path, none = "/v1/limits/org", `"spent_zone":"Europe/Berlin","spent_by_day":[],"spenders":[]}`
	h.say(t, "CL.LIMIT SET org QUOTA 100000 DAY TZ Europe/Berlin")
	h.send(t, "GET", path, "").is(t, 200, none)
	h.say(t, "CL.MRESERVE 1 org acme 1000 TTL 1m ID a", "CL.MRESERVE 1 org bell 500 TTL 1m ID b", "CL.CHECK org acme 7 DEBIT", "CL.MCOMMIT a 1 org acme 1200")
	day := namedlimit.DateOf(h.Config.NamedLimits.Lookup([]byte("org")).Today(h.Clock.Now()))
	const acme, bell = `{"db":0,"key":"acme","units":1200,"error":0}`, `{"db":0,"key":"bell","units":300,"error":0}`
	h.send(t, "GET", path, "").is(t, 200, `"spent_by_day":[{"day":"`+day+`","units":1707}],"spenders_since":"20`).is(t, 200, `"spenders":[`+acme+`]}`)
	h.say(t, "CL.MCOMMIT b 1 org bell 300")
	h.send(t, "GET", path, "").is(t, 200, `{"day":"`+day+`","units":1507}`).is(t, 200, `"spenders":[`+acme+`,`+bell+`]}`)
	h.send(t, "GET", path, "", "X-Cellserver-Token: "+token).is(t, 200, `{"day":"`+day+`","units":1507}`).is(t, 200, `"spenders":[`+acme+`]}`)
	h.say(t, "CL.LIMIT DEL org", "CL.LIMIT SET org QUOTA 100000 DAY TZ Europe/Berlin")
	h.send(t, "GET", path, "").is(t, 200, `{"day":"`+day+`","units":1507}],"spenders":[]}`)
}
