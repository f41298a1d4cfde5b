package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

const dayNs = 24 * 3600 * int64(1e9)

// today is the day of the tests' time in UTC, 2023-11-14.
const today = int32(testNowNs / dayNs)

// held returns the state of a key under a limit with holds: each of some units, for some seconds, begun some
// seconds ago.
func held(t *testing.T, l *namedlimit.Limit, holds ...[3]int64) (s limiter.State) {
	t.Helper()
	l.Explain(nil, namedlimit.At(testNowNs), 0).Named.Counts.Held.Add(uint64(len(holds)))
	for i, h := range holds {
		of := limiter.Hold{ID: limiter.HoldIDOf(fmt.Append(nil, i)), TTLNs: h[1] * 1e9, New: true, Charge: h[1] == 5}
		rule := limiter.OfNamed(l.Explain(nil, namedlimit.At(testNowNs), 0).Named.Holding(&of))
		if r, _, err := rule.Decide(&s, testNowNs-h[2]*1e9, h[0]); err != nil || r.Limited {
			t.Fatal(r, err)
		}
	}
	return s
}

// budgets is a server with the limit org in dollars and the limit tokens, of which something is held and
// spent.
func budgets(t *testing.T) (Source, *namedlimit.Registry) {
	t.Helper()
	org := definition("org", namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 50_000_000, Calendar: calendar.Spec{Every: calendar.Month, Zone: "Europe/Berlin"}})
	org.Unit, org.MaxReservation = namedlimit.USD, 0.5
	r := limitsOf(t, org, definition("tokens", namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 1000, PeriodSec: 3600}),
		definition("plain", perPeriod(1, 1, 60)))
	s := testSource(nil)
	s.Limits = r.All
	s.Spent = func(string) store.Spends {
		return store.Spends{
			{Limit: "org", Day: today - 31}: 1 << 40, {Limit: "org", Day: today - 30}: 1_000_000,
			{Limit: "org", Day: today - 1}: -5, {Limit: "org", Day: today}: 12_345_678,
			{Limit: "tokens", Day: today}: 4321,
		}
	}
	many := make([][3]int64, 0, 25)
	for i := range int64(25) {
		many = append(many, [3]int64{1, 100, 60 - i})
	}
	tokens := r.Lookup([]byte("tokens"))
	s.State = statesOf(map[string]limiter.State{
		"org:acme":    held(t, r.Lookup([]byte("org")), [3]int64{2_000_000, 60, 30}, [3]int64{1_000_000, 600, 0}),
		"tokens:k":    held(t, tokens, [3]int64{100, 10, 70}, [3]int64{40, 5, 65}, [3]int64{30, 3600, 61}),
		"tokens:many": held(t, tokens, many...),
		"gone:k":      held(t, tokens, [3]int64{7, 60, 30}),
	})
	return s, r
}

func drawerOf(t *testing.T, p *Page, query string) string {
	t.Helper()
	_, drawer, _ := strings.Cut(body(t, p, query), `id="drawer"`)
	return drawer
}

// TestHoldsOfKey: a key's drawer has what is settled, held with its age, and overdue, in bounded number.
func TestHoldsOfKey(t *testing.T) {
	s, _ := budgets(t)
	p := New(s)
	drawer := drawerOf(t, p, "lang=en&limit=org&key=acme")
	wantText(t, drawer, "<dt>settled</dt><dd>$0.00</dd>", "<dt>not settled</dt><dd>$3.00</dd>", "<h3>Holds</h3>", "<dt>held</dt><dd>$3.00, holds: 2</dd>", "<dt>overdue</dt><dd>$0.00, holds: 0</dd>",
		`<th scope="row">$2.00</th><td>30`+"\u00a0s</td><td>in 30\u00a0s</td>", `<th scope="row">$1.00</th><td>0`+"\u00a0ns</td><td>in 10m0s</td>")
	lacksText(t, drawer, ">overdue for<", "The time of these is over")
	drawer = drawerOf(t, p, "lang=en&key=tokens:k")
	wantText(t, drawer, "<dt>settled</dt><dd>0</dd>", "<dt>not settled</dt><dd>70</dd>", "<dt>held</dt><dd>30, holds: 1</dd>", "<dt>overdue</dt><dd>140, holds: 2</dd>",
		`<th scope="row">100</th><td>1m10s</td><td>1m0s</td>`, "The time of these is over", `<th scope="row">40<span class="badge">stays charged</span></th><td>1m5s</td>`)
	drawer = drawerOf(t, p, "lang=en&key=tokens:many")
	wantText(t, drawer, "25, holds: 25", "And 5 newer ones.", "<td>1m0s</td>")
	if n := strings.Count(drawer, `data-k="open`); n != 1+20 {
		t.Errorf("%d rows", n)
	}
	wantText(t, drawerOf(t, p, "lang=en&key=gone:k"), "The limit is not known", "<dt>held</dt><dd>7, holds: 1</dd>")
	wantText(t, drawerOf(t, p, "lang=zh&limit=org&key=acme"), "<h3>预扣</h3>", "<dt>预扣中</dt><dd>$3.00，共 2 笔</dd>", "过期未结算")
	for _, query := range []string{"lang=en&limit=tokens&key=nobody", "lang=en&limit=plain&key=k"} {
		lacksText(t, drawerOf(t, p, query), "<h3>Holds</h3>")
	}
	lacksText(t, drawerOf(t, p, "lang=en&limit=plain&key=k"), "settled")
}

// TestSpending: a limit's row and drawer have what it has spent by day; the table has columns for that only
// if something was spent.
func TestSpending(t *testing.T) {
	s, r := budgets(t)
	p := named(t, s, r)
	page := body(t, p, "lang=en")
	wantText(t, page, ">spent today</th><th scope=\"col\" class=\"minor\">31 days</th>", "Spent is what was held",
		`<td>$12.34</td><td class="minor"><svg class="course" viewBox="0 0 124 24"`, "<td>4,321</td>", `<td>–</td><td class="minor">–</td><td class="minor">–</td></tr>`)
	drawer := drawerOf(t, p, "lang=en&limit=org")
	wantText(t, drawer, "<h3>Spent by day</h3><p>Today $12.34; in 31 days $13.34</p>", `aria-label="Today $12.34; in 31 days $13.34"`, "<span>2023-10-15</span><span>today</span>",
		"Days of Europe/Berlin.", `<tr data-k="2023-11-14"><th scope="row"><time>2023-11-14</time></th><td>$12.34</td></tr><tr data-k="2023-11-13">`,
		"A hold gets at most 50\u00a0% of the smallest capacity: $25.00.", "<h3>Who spent most</h3>", "This server has settled nothing")
	if got := strings.Count(drawer, `<path class="calls" d="M0 24v-2h3v2zm4 0m4 0`); got != 1 {
		t.Errorf("%d drawings begin with a low bar", got)
	}
	wantText(t, drawerOf(t, p, "lang=zh&limit=org"), "<h3>每日用量</h3><p>今天 $12.34；31 天共 $13.34</p>", "一笔预扣最多为最小容量的 50\u00a0%：$25.00。")
	lacksText(t, drawerOf(t, p, "lang=en&limit=plain"), "Spent by day", "Who spent most")

	s.Spent = nil
	lacksText(t, body(t, named(t, s, r), "lang=en"), "spent today", "Spent is what")
}

// TestSpenders: a limit's drawer has the keys that have spent most, with links; those that share a counter
// say by how much it may be too high.
func TestSpenders(t *testing.T) {
	s, r := budgets(t)
	of := r.Lookup([]byte("org")).Spenders()
	for i := range 40 {
		of.Add(testNowNs-60e9, 0, fmt.Appendf(nil, "org:%d", i), 1)
	}
	of.Add(testNowNs, 0, []byte("org:acme"), 2_000_000)
	of.Add(testNowNs, 3, []byte("org:"+hostile), 3_000_000)
	p := New(s)
	drawer := drawerOf(t, p, "lang=en&limit=org")
	wantText(t, drawer, "Settled on this server since 2023-11-14 22:12 UTC.", `<th scope="col">settled</th>`, `>org:acme</bdi></a>`, "<td>$2.00, or up to $0.00",
		"<small> db 3</small>", "$3.00, or up to")
	noMarkup(t, body(t, p, "lang=en&limit=org"))
	if strings.Index(drawer, "$3.00") > strings.Index(drawer, "$2.00") {
		t.Error("the order is wrong")
	}
	if _, err := r.Delete("org"); err != nil {
		t.Fatal(err)
	}
	again := definition("org", perPeriod(1, 1, 60))
	if err := r.Set(again); err != nil {
		t.Fatal(err)
	}
	lacksText(t, drawerOf(t, New(s), "lang=en&limit=org"), "acme")
}
