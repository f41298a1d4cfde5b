package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

// orgLimit is a budget in dollars.
var orgLimit = namedlimit.Definition{Name: "org", MaxReservation: 0.5, Policy: namedlimit.Policy{Rules: []namedlimit.Rule{
	{Algorithm: namedlimit.Quota, Capacity: 50_000_000, Calendar: calendar.Spec{Every: calendar.Month, Zone: "Europe/Berlin"}},
}}}

// budgetServer is a fake with the limits api and org. The key acme of org has 25 open holds of a dollar and
// an overdue one, and has spent most.
func budgetServer(t *testing.T) *fake {
	t.Helper()
	org := orgLimit
	org.Unit = namedlimit.USD
	r := newRegistry(t, apiLimit, org)
	l := r.Lookup([]byte("org"))
	f := &fake{}
	source := f.source()
	useLimits(t, &source, r)
	acme, others := acmeState(t, l), source.State
	source.State = func(nowNs int64, key store.Key) (limiter.State, bool, error) {
		if key.DB == 0 && string(key.Name) == "org:acme" {
			return acme, true, nil
		}
		return others(nowNs, key)
	}
	source.Spent = func(string) store.Spends {
		all, today := store.Spends{}, l.Today(time.Now().UnixNano())
		for ago := range int32(store.SpentDays) {
			all[store.SpentAt{Limit: "org", Day: today - ago}] = 1_000_000 * int64(1+ago%7)
		}
		return all
	}
	for i, name := range []string{"org:acme", "org:" + hostile, "org:" + strings.Repeat("long", 30)} {
		l.Spenders().Add(time.Now().UnixNano(), 0, []byte(name), int64(30-10*i)*1_000_000)
	}
	f.listen(t, withHistory(f.run(t, source)))
	return f
}

func acmeState(t *testing.T, l *namedlimit.Limit) (s limiter.State) {
	t.Helper()
	named, _ := l.Named(nil, namedlimit.At(time.Now().UnixNano()))
	nowNs := time.Now().UnixNano()
	hold := func(n int, units, agoNs, forNs int64) {
		rule := limiter.OfNamed(named.Holding(&limiter.Hold{ID: limiter.HoldIDOf([]byte{byte(n)}), TTLNs: forNs, New: true, Charge: n == 0}))
		if result, _, err := rule.Decide(&s, nowNs-agoNs, units); err != nil || result.Limited {
			t.Fatal(result, err)
		}
		named.Counts.Held.Add(1)
	}
	hold(0, 2_000_000, 100e9, 40e9)
	for i := range 25 {
		hold(1+i, 1_000_000, int64(50-i)*1e9, 3600e9)
	}
	return s
}

// TestBudgetInRow: the table has what a limit spends today and in 31 days, and a dash for others; a phone has
// the figure alone.
func TestBudgetInRow(t *testing.T) {
	t.Parallel()
	v := visit(t, budgetServer(t).url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	// The rate is not known before a second sample.
	row := `[...document.querySelector("#limits tr[data-k=org]").cells].filter((cell) => cell.checkVisibility()).map((cell) => cell.innerText.trim()).join("|").replace("|0|", "|–|")`
	if got := eval[string](v, row); got != "org|$50.00 a month (Europe/Berlin)|–||–|–|$1.00||–" {
		t.Errorf("the row is %q", got)
	}
	if got := eval[string](v, `[...document.querySelectorAll("#limits thead th")].map((th) => th.innerText).join("|")`); !strings.Contains(got, "|Spent today|31 days|") {
		t.Errorf("the headings are %q", got)
	}
	if bars := eval[string](v, `document.querySelectorAll("#limits tr[data-k=org] .course path.calls")[1].getAttribute("d")`); strings.Count(bars, "z") != store.SpentDays {
		t.Errorf("the bars are %q", bars)
	}
	v.do(chromedp.EmulateViewport(390, 900))
	v.open("?lang=zh")
	if got := eval[string](v, row); got != "org|–|–|–|$1.00" {
		t.Errorf("the row of a phone is %q", got)
	}
	if eval[bool](v, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the phone's page is wider than the phone")
	}
}

// TestBudgetInDrawer: a limit's drawer has its days, also as a table that stays open, and who spent most,
// from where the keyboard leads to the key with its holds.
func TestBudgetInDrawer(t *testing.T) {
	t.Parallel()
	f := budgetServer(t)
	v := visit(t, f.url)
	v.do(chromedp.EmulateViewport(1440, 900))
	v.open("?lang=en")
	v.settled()
	once := v.loadedOnce()
	v.click(`#limits tr[data-k=org] a`)
	v.until(`document.querySelector("#drawer-heading")?.textContent === "Limit org"`)
	for _, want := range []string{"A hold gets at most 50\u00a0% of the smallest capacity: $25.00.", "Today $1.00; in 31 days $118.00", "Who spent most", "org:acme\t$30.00", hostile} {
		if got := v.text("#drawer"); !strings.Contains(strings.ReplaceAll(got, "Copy", ""), want) {
			t.Errorf("the drawer %q lacks %q", got, want)
		}
	}
	v.click(`#drawer summary`)
	v.until(`document.querySelectorAll("#drawer details[open] tbody tr").length === 31`)
	v.refreshed()
	if !eval[bool](v, `document.querySelector("#drawer details").open`) {
		t.Error("an update closed the table")
	}
	v.do(chromedp.Focus(chromedp.CSS(`#drawer a[href*="acme"]`)), chromedp.KeyEvent(kb.Enter))
	v.until(`document.querySelector("#drawer-heading .key")?.textContent === "org:acme"`)
	for _, want := range []string{"Held\n$25.00, holds: 25", "Overdue\n$2.00, holds: 1", "And 5 newer ones.", "stays charged"} {
		if got := v.text("#drawer"); !strings.Contains(got, want) {
			t.Errorf("the drawer %q lacks %q", got, want)
		}
	}
	if n := eval[int](v, `document.querySelectorAll("#drawer tr[data-k^=open]").length`); n != 20 {
		t.Errorf("%d open holds are shown", n)
	}
	once()
	for _, width := range []int64{390, 900} {
		v.do(chromedp.EmulateViewport(width, 900))
		for _, query := range []string{"?lang=zh&limit=org", "?lang=en&limit=org&key=acme"} {
			v.open(query)
			if eval[bool](v, `document.documentElement.scrollWidth > innerWidth || document.querySelector("#drawer").scrollWidth > document.querySelector("#drawer").clientWidth`) {
				t.Errorf("%s is wider than %d", query, width)
			}
		}
	}
}

// TestBudgetsAreAccessible, light, dark and on a phone.
func TestBudgetsAreAccessible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	source := axeSource(t)
	v := visit(t, budgetServer(t).url)
	for _, query := range []string{"?lang=en&limit=org", "?lang=zh&limit=org&key=acme"} {
		for _, as := range []struct {
			scheme string
			width  int64
		}{{"light", 1440}, {"dark", 900}, {"dark", 390}} {
			v.do(chromedp.EmulateViewport(as.width, 900), colorScheme(as.scheme))
			v.open(query)
			v.settled()
			eval[chromedp.Void](v, `for (const details of document.querySelectorAll("details")) { details.open = true; }`)
			for _, violation := range v.violations(source) {
				t.Errorf("%s, %s: %s", query, fmt.Sprint(as), violation)
			}
		}
	}
}
