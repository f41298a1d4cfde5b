package limitsfile

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

func calendars() *calendar.Set { return calendar.NewSet(&calendar.Wall{}, zones.Load) }

func parse(text string) (namedlimit.Definitions, error) {
	return parseFile("f", []byte(text), funnel.Burst, calendars())
}

// window returns the rule of a window of the first form.
func window(capacity, count, periodSec int64) namedlimit.Rule {
	return namedlimit.Rule{Capacity: capacity, Count: count, PeriodSec: periodSec}
}

func byRules(rules ...namedlimit.Rule) namedlimit.Policy { return namedlimit.Policy{Rules: rules} }

// defined returns definitions without plans.
func defined(all ...namedlimit.Definition) namedlimit.Definitions {
	d := namedlimit.Definitions{Limits: map[string]namedlimit.Definition{}, Plans: map[string][]namedlimit.Rule{}}
	for _, l := range all {
		l.Near = max(l.Near, namedlimit.DefaultNear)
		d.Limits[l.Name] = l
	}
	return d
}

func TestParseWindows(t *testing.T) {
	t.Parallel()
	const text = `# what the shop allows
limits:
  login:
    windows:
      - {max_burst: 4, count: 5, period: 1m}
      - max_burst: 99
        count: 100
        period: 86400
  api.v2: {windows: [{capacity: 20, count: 10, period: 1s}], shadow: true}
  7_a-B:
    windows: &hourly [{max_burst: 0, count: 1, period: 1h}]
    shadow: false
  same: {windows: *hourly}
`
	for reading, more := range map[funnel.Reading]int64{funnel.Burst: 1, funnel.Capacity: 0} {
		text := text
		if reading == funnel.Capacity {
			text = strings.ReplaceAll(text, "max_burst: 0", "max_burst: 1")
		}
		got, err := parseFile("f", []byte(text), reading, calendars())
		hourly := byRules(window(1, 1, 3600))
		want := defined(
			namedlimit.Definition{Name: "login", Policy: byRules(window(4+more, 5, 60), window(99+more, 100, 86400))},
			namedlimit.Definition{Name: "api.v2", Policy: byRules(window(20, 10, 1)), Shadow: true},
			namedlimit.Definition{Name: "7_a-B", Policy: hourly},
			namedlimit.Definition{Name: "same", Policy: hourly},
		)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("reading %d: got %+v, %v, want %+v", reading, got, err, want)
		}
	}
	if got, err := parse("limits: {}\n"); err != nil || len(got.Limits)+len(got.Plans) != 0 {
		t.Errorf("no limits: got %v, %v", got, err)
	}
}

const everything = `limits:
  api:
    rules:
      - {algorithm: funnel, max_burst: 99, count: 100, period: 1m}
      - {algorithm: funnel, capacity: 100, count: 100, period: 60, name: again}
      - {algorithm: token_bucket, capacity: 7, refill: 5, period: 30s}
      - {algorithm: fixed_window, max_count: 8, period: 1h}
      - {algorithm: sliding_window, max_count: 4096, period: 1h}
      - {algorithm: approximate_window, max_count: 1000000, period: 24h}
      - {algorithm: quota, max_count: 1000000, every: month, time_zone: Europe/Berlin, start: 15, name: monthly}
      - {start: 06:00, algorithm: quota, max_count: 1, every: day}
      - {algorithm: quota, max_count: 2, every: year, start: 02-29, time_zone: UTC}
      - {algorithm: quota, max_count: 3, every: hour, epoch: true, name: 1}
    overrides:
      - {keys: [acme, 42, 0x10, true, 1.50, 2024-01-01, "null", "", !!binary /w==, [acme, 7], ["4:acme"], "1:"], plan: enterprise}
      - {pattern: "trial-*", rules: [{algorithm: sliding_window, max_count: 10, period: 1m}]}
      - {keys: [mallory], deny: true}
      - {pattern: 7?, unlimited: true}
    shadow: true
    near: 0.95
  by-plan: {plan: free, near: 1}
  open: {unlimited: true}
  closed: {deny: true, overrides: [{keys: [a], plan: free}], shadow: false}
  old: {windows: [{capacity: 1, count: 1, period: 1}], overrides: []}
plans:
  enterprise: {rules: [{algorithm: token_bucket, capacity: 1000, refill: 1000, period: 1m}]}
  free: {rules: [{algorithm: funnel, capacity: 1, count: 1, period: 1}]}
`

func TestParseRules(t *testing.T) {
	t.Parallel()
	quota := func(maxCount int64, every calendar.Every, zone string, start calendar.Start) namedlimit.Rule {
		return namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: maxCount, Calendar: calendar.Spec{Every: every, Zone: zone, Start: start}}
	}
	named := func(r namedlimit.Rule, name string) namedlimit.Rule { r.Name = name; return r }
	epoch := named(quota(3, calendar.Hour, "", 0), "1")
	epoch.Calendar.Epoch = true
	enterprise := []namedlimit.Rule{{Algorithm: namedlimit.TokenBucket, Capacity: 1000, Count: 1000, PeriodSec: 60}}
	free := []namedlimit.Rule{window(1, 1, 1)}
	want := defined(
		namedlimit.Definition{
			Name: "api",
			Policy: byRules(
				window(100, 100, 60), named(window(100, 100, 60), "again"),
				namedlimit.Rule{Algorithm: namedlimit.TokenBucket, Capacity: 7, Count: 5, PeriodSec: 30},
				namedlimit.Rule{Algorithm: namedlimit.FixedWindow, Capacity: 8, PeriodSec: 3600},
				namedlimit.Rule{Algorithm: namedlimit.SlidingWindow, Capacity: 4096, PeriodSec: 3600},
				namedlimit.Rule{Algorithm: namedlimit.ApproximateWindow, Capacity: 1_000_000, PeriodSec: 86400},
				named(quota(1_000_000, calendar.Month, "Europe/Berlin", 14), "monthly"), quota(1, calendar.Day, "", 360),
				quota(2, calendar.Year, "", 31+28), epoch,
			),
			Overrides: []namedlimit.Override{
				{Keys: []string{"acme", "42", "0x10", "true", "1.50", "2024-01-01", "null", "", "\xff", "4:acme,1:7", "6:4:acme", "1:"}, Policy: namedlimit.Policy{Plan: "enterprise", Rules: enterprise}},
				{Pattern: "trial-*", Policy: byRules(namedlimit.Rule{Algorithm: namedlimit.SlidingWindow, Capacity: 10, PeriodSec: 60})},
				{Keys: []string{"mallory"}, Policy: namedlimit.Policy{Constant: limiter.Deny}},
				{Pattern: "7?", Policy: namedlimit.Policy{Constant: limiter.Unlimited}},
			},
			Shadow: true, Near: 0.95,
		},
		namedlimit.Definition{Name: "by-plan", Policy: namedlimit.Policy{Plan: "free", Rules: free}, Near: 1},
		namedlimit.Definition{Name: "open", Policy: namedlimit.Policy{Constant: limiter.Unlimited}},
		namedlimit.Definition{
			Name: "closed", Policy: namedlimit.Policy{Constant: limiter.Deny},
			Overrides: []namedlimit.Override{{Keys: []string{"a"}, Policy: namedlimit.Policy{Plan: "free", Rules: free}}},
		},
		namedlimit.Definition{Name: "old", Policy: byRules(window(1, 1, 1))},
	)
	want.Plans["enterprise"], want.Plans["free"] = enterprise, free
	got, err := parse(everything)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, l := range got.Limits {
		if err := l.Check(calendars()); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
}

func manyLimits(n int) string {
	var b strings.Builder
	b.WriteString("limits:\n")
	for i := range n {
		b.WriteString("  l" + strconv.Itoa(i) + ": {windows: [{max_burst: 4, count: 5, period: 60}]}\n")
	}
	return b.String()
}

// many returns n texts in order, in which # is their number.
func many(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(text, "#", strconv.Itoa(i)))
	}
	return b.String()
}

func TestParseFileBounds(t *testing.T) {
	t.Parallel()
	const deny = "limits:\n  a:\n    deny: true\n    overrides:\n"
	keys := func(n int) string { return deny + "    - {keys: [" + many(n, "k#, ") + "], deny: true}\n" }
	patterns := func(n int) string { return deny + many(n, "    - {pattern: k#*, deny: true}\n") }
	plans := func(n int) string {
		return "limits: {}\nplans:\n" + many(n, "  p#: {rules: [{algorithm: fixed_window, max_count: 1, period: 1}]}\n")
	}
	rules := func(n int) string {
		return "limits:\n  a:\n    rules:\n" + many(n, "    - {algorithm: fixed_window, max_count: 1, period: 1, name: r#}\n")
	}
	for _, tt := range []struct {
		text  func(n int) string
		bound int
		want  string
	}{
		{manyLimits, namedlimit.MaxNames, "f:1: 1025 limits; the maximum is 1024"},
		{keys, namedlimit.MaxOverrides, "f:5: with these, the file has overrides for more than 100000 keys, the maximum"},
		{patterns, namedlimit.MaxPatterns, "f:133: a limit must have at most 128 patterns"},
		{plans, namedlimit.MaxPlans, "f:3: 1025 plans; the maximum is 1024"},
		{rules, namedlimit.MaxRules, "f:4: a limit must have 1 to 16 rules, got 17"},
	} {
		if _, err := parse(tt.text(tt.bound)); err != nil {
			t.Errorf("the most: %v", err)
		}
		if _, err := parse(tt.text(tt.bound + 1)); err == nil || err.Error() != tt.want {
			t.Errorf("one more: got %v, want %s", err, tt.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yml")
	read := func() (namedlimit.Definitions, bool, error) { return readFile(path, funnel.Burst, calendars()) }
	if _, _, err := read(); err == nil || err.Error() != "cannot read "+path+": no such file or directory" {
		t.Errorf("no file: %v", err)
	}
	for text, end := range map[string]bool{"limits: {}\n": true, "limits: {}": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, whole, err := read(); err != nil || whole != end {
			t.Errorf("%q: %t, %v", text, whole, err)
		}
	}
	if err := os.WriteFile(path, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(); err == nil || err.Error() != "cannot read "+path+": it is longer than 16 MiB" {
		t.Errorf("too long: %v", err)
	}
}

// TestEqualRulesAreHeldOnce: keys with rules of their own, as of a few plans, cost little.
func TestEqualRulesAreHeldOnce(t *testing.T) {
	t.Parallel()
	got, err := parse("limits:\n  a:\n    deny: true\n    overrides:\n" +
		many(100, "    - {keys: [k#], rules: [{algorithm: fixed_window, max_count: 1, period: 1}, {algorithm: quota, max_count: 1, every: day}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	overrides := got.Limits["a"].Overrides
	for _, o := range overrides {
		if &o.Rules[0] != &overrides[0].Rules[0] {
			t.Fatal("equal rules are held twice")
		}
	}
}

// TestAliasesAreBounded: aliases cannot multiply an error's memory, nor the keys.
func TestAliasesAreBounded(t *testing.T) {
	t.Parallel()
	text := "limits:\n  a0: &a\n" + many(2000, "    f#: 1\n") + many(2000, "  b#: *a\n")
	_, err := parse(text)
	if err == nil || !strings.HasSuffix(err.Error(), "; and many more errors") || len(err.Error()) > 3000 {
		t.Errorf("got %.2000v", err)
	}
	text = "limits:\n  a:\n    deny: true\n    overrides: &all\n    - {keys: [" + many(1000, "k#, ") + "], deny: true}\n" +
		many(1000, "  b#: {deny: true, overrides: *all}\n")
	if _, err = parse(text); err == nil || !strings.HasPrefix(err.Error(), "f:5: with these, the file has overrides for more than 100000 keys, the maximum") {
		t.Errorf("got %.2000v", err)
	}
}

// FuzzParseFile: any text is parsed within bounds, or refused with a line number; what is read is kept and
// written.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte("limits:\n  a:\n    windows: &w\n    - {max_burst: 4, count: 5, period: 1m}\n    shadow: true\n  b: {windows: *w}\n"))
	f.Add([]byte("limits: &a\n  b: *a\n"))
	f.Add([]byte("limits: {a: {windows: [{capacity: 1, count: 1, period: 1}]}}\n---\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("%YAML 1.2\n---\n!!map {limits: !!set {a}}"))
	f.Add([]byte(everything))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseFile("f", text, funnel.Burst, calendars())
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		var all []namedlimit.Definition
		for _, name := range slices.Sorted(maps.Keys(got.Limits)) {
			d := got.Limits[name]
			if err := d.Check(calendars()); err != nil || d.Name != name {
				t.Errorf("%q: %+v: %v", name, d, err)
			}
			if d, ok := asKept(d); ok {
				all = append(all, d)
			}
		}
		kept, err := parseKept(keptText(all))
		if err != nil || !slices.EqualFunc(kept, all, func(a, b namedlimit.Definition) bool { return a.Equal(&b) }) {
			t.Errorf("kept as %+v, %v; want %+v", kept, err, all)
		}
		checkText(t, got)
	})
}

// asKept returns what commands can define of a limit, if its rules differ without their names.
func asKept(d namedlimit.Definition) (kept namedlimit.Definition, ok bool) {
	d.Overrides, d.Near, d.Rules = nil, namedlimit.DefaultNear, slices.Clone(d.Rules)
	for i := range d.Rules {
		d.Rules[i].Name = ""
	}
	ok = d.Check(calendars()) == nil
	if d.Plan != "" {
		d.Rules = nil
	}
	return d, ok
}

// BenchmarkParseFile reads the most overrides of 1,000 limits, by plans and each with its own rules.
func BenchmarkParseFile(b *testing.B) {
	for name, override := range map[string]string{
		"plans": "    - {keys: [customer-#], plan: p}\n",
		"rules": "    - {keys: [customer-#], rules: [{algorithm: token_bucket, capacity: #1, refill: 1000, period: 1m}]}\n",
	} {
		text := "plans: {p: {rules: [{algorithm: fixed_window, max_count: 1, period: 1}]}}\nlimits:\n" +
			many(1000, "  l#:\n    deny: true\n    overrides:\n"+strings.ReplaceAll(many(100, override), "customer-", "customer-#-"))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
