package limitsfile

import (
	"strings"
	"testing"
)

// TestParseFileErrors: errors have the line and the remedy.
func TestParseFileErrors(t *testing.T) {
	t.Parallel()
	const window = "{max_burst: 4, count: 5, period: 60}"
	for _, tt := range []struct{ text, want string }{
		{"", "f:1: the file is empty; write 'limits: {}' for no limits"},
		{"# only words\n", "f:1: the file is empty; write 'limits: {}' for no limits"},
		{"limits: {}\n---\nlimits: {}\n", "f:2: more than one document; remove this '---' and all below"},
		{"limits:\n\tlogin:\n", "f:2: not YAML: found character that cannot start any token"},
		{"limits: [\n", "f:2: not YAML: did not find expected node content"},
		{"hello\n", "f:1: the file must be a mapping"},
		{"descriptors: []\ndomain: d\n", `f:1: unknown field "descriptors", as in a file for --envoy-config: check it by cellserver config check ` +
			`--grpc-addr 127.0.0.1:6382 --envoy-config DIRECTORY, or translate it by cellserver limits import`},
		{"other: 1\n", `f:1: unknown field "other"; there are limits, plans, and x-... for anchors`},
		{"{}\n", "f:1: limits is missing"},
		{"plans: {}\n", "f:1: limits is missing"},
		{"limits:\n", "f:1: limits must be a mapping"},
		{"limits:\n- a\n", "f:2: limits must be a mapping"},
		{"limits:\n  a b: {}\n", `f:2: "a...": a limit's name must be 1 to 64 letters, digits, dots, hyphens and underscores`},
		{"limits:\n  [a]: {}\n", "f:2: a key must be a word"},
		{"limits:\n  a: 1\n", "f:2: the limit a must be a mapping"},
		{"limits:\n  a: {}\n", "f:2: the limit a must have rules, windows, plan, deny: true or unlimited: true"},
		{"limits:\n  a: {deny: true,\n unlimited: true}\n", "f:2: the limit a has both deny and unlimited; keep one of them"},
		{"limits:\n  a: {deny: false}\n", `f:2: deny must be true, or left out, got "false"`},
		{"limits:\n  a:\n    windows: " + window + "\n", "f:3: windows must be a list"},
		{"limits:\n  a:\n    windows: []\n", "f:3: a limit must have 1 to 16 windows, got 0"},
		{"limits:\n  a:\n    windows: [" + strings.Repeat(window+",", 17) + "]\n", "f:3: a limit must have 1 to 16 windows, got 17"},
		{"limits:\n  a:\n    windows: [" + window + ", " + window + "]\n", "f:3: the window in line 3 has the period 60, too; the period identifies a window, so use different ones"},
		{"limits:\n  a:\n    window: []\n", `f:3: unknown field "window"; did you mean windows? There are rules, windows, plan, deny, unlimited, overrides, shadow, near, unit and max_reservation`},
		{"limits:\n  a:\n    windows:\n    - 5\n", "f:4: a window must be a mapping"},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, count: 5, period: 60, burst: 1}\n", `f:4: unknown field "burst"; there are max_burst or capacity, count and period`},
		{"limits:\n  a:\n    windows:\n    - {algorithm: funnel, max_burst: 4, count: 5, period: 60}\n", `f:4: unknown field "algorithm"; there are max_burst or capacity, count and period`},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, count: 5}\n", "f:4: a window must have max_burst or capacity, count and period"},
		{"limits:\n  a:\n    windows:\n    - {count: 5, period: 60}\n", "f:4: a window must have max_burst or capacity, count and period"},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, capacity: 5, count: 5, period: 60}\n", "f:4: a window has max_burst or capacity, not both"},
		{"limits:\n  a:\n    windows:\n    - max_burst: 4.5\n      count: 5\n      period: 60\n", `f:4: max_burst must be a decimal number, got "4.5"`},
		{"limits:\n  a:\n    windows:\n    - max_burst: 4\n      count: [5]\n      period: 60\n", `f:5: count must be a decimal number, got ""`},
		{"limits:\n  a:\n    windows:\n    - max_burst: 4\n      count: 5\n      period: 1.5s\n", `f:6: period must be whole seconds, such as 60, 60s, 1m, 24h, 1d or 1w, got "1.5s"`},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 4, count: 5, period: a day}\n", `f:4: period must be whole seconds, such as 60, 60s, 1m, 24h, 1d or 1w, got "a..."`},
		{"limits:\n  a:\n    windows:\n    - {max_burst: -1, count: 5, period: 60}\n", "f:4: max_burst must be at least 0, got -1"},
		{"limits:\n  a:\n    windows:\n    - {capacity: 0, count: 5, period: 60}\n", "f:4: capacity must be at least 1, got 0"},
		{"limits:\n  a:\n    windows:\n    - {max_burst: 1, count: 0, period: 60}\n", "f:4: count must be at least 1, got 0"},
		{"limits:\n  a:\n    windows: [" + window + "]\n    shadow: yes\n", `f:4: shadow must be true or false, got "yes"`},
		{"limits:\n  a: {windows: [" + window + "]}\n  a: {windows: [" + window + "]}\n", `f:3: "a" is in line 2 already`},
		{"limits:\n  a: {windows: [{<<: {max_brust: 1}, count: 1,\n period: 1}]}\n", `f:2: unknown field "max_brust"; did you mean max_burst? There are max_burst or capacity, count and period`},
		{"limits:\n  a: {windows: [{<<: 5}]}\n", "f:2: a merged mapping must be a mapping; f:2: a window must have max_burst or capacity, count and period"},
		{"x-common: {a: 1}\nlimit: {}\n", `f:2: unknown field "limit"; did you mean limits? There are limits, plans, and x-... for anchors`},
		{
			"plans:\n  p: {rule: []}\nlimits:\n  a: {windows: [{count: 0, period: x,\n   max_burst: y, cuont: 4}],\n   shadow: 1, plan: q}\n  b: {deny: no,\n   overides: []}\n",
			`f:2: unknown field "rule"; did you mean rules? There are rules; f:4: period must be whole seconds, such as 60, 60s, 1m, 24h, 1d or 1w, got "x"; ` +
				`f:5: unknown field "cuont"; did you mean count? There are max_burst or capacity, count and period; f:5: max_burst must be a decimal number, got "y"; ` +
				`f:6: shadow must be true or false, got "1"; f:6: unknown plan "q"; there are p; f:7: deny must be true, or left out, got "no"; ` +
				`f:8: unknown field "overides"; did you mean overrides? There are rules, windows, plan, deny, unlimited, overrides, shadow, near, unit and max_reservation`,
		},
		{
			"limits:\n  a: {shadow: 1}\n  b: 2\n  c: {windows: [" + window + "]}\n",
			`f:2: shadow must be true or false, got "1"; f:3: the limit b must be a mapping`,
		},
	} {
		if _, err := parse(tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

// TestRuleErrors: the rule is in line 4.
func TestRuleErrors(t *testing.T) {
	t.Parallel()
	const all = "funnel, token_bucket, fixed_window, sliding_window, approximate_window and quota"
	for rule, want := range map[string]string{
		"5":                            "a rule must be a mapping",
		"{algoritm: funnel, count: 1}": `unknown field "algoritm"; did you mean algorithm?`,
		"{algorithm: funel}":           `unknown algorithm "funel"; did you mean funnel? There are ` + all,
		"{algorithm: funnel, max_burst: 1, count: 9223372036854775807, period: 1}": "count must be at most 1000000000 for each second of the period, got 9223372036854775807 in 1 s",
		"{algorithm: token_bucket, capacity: 1, refill: 2000000001, period: 2}":    "refill must be at most 1000000000 for each second of the period, got 2000000001 in 2 s",
		"{algorithm: funnel, max_burst: 1, count: 1, period: 0}":                   "period must be at least 1, got 0",
		"{algorithm: token_bucket, capacity: 1, refill: 1, period: -1}":            "period must be at least 1, got -1",
		"{max_count: 4}":                                                           "a rule must have algorithm; there are " + all,
		"{algorithm: gcra}":                                                        `unknown algorithm "gcra"; there are ` + all,
		"{algorithm: [quota]}":                                                     `unknown algorithm ""; there are ` + all,
		"{algorithm: funnel, max_burst: 4, count: 1}":                              "the funnel must have max_burst or capacity, count and period",
		"{algorithm: token_bucket, capacity: 4, period: 1}":                        "the token_bucket must have capacity, refill and period",
		"{algorithm: fixed_window, max_count: 4}":                                  "the fixed_window must have max_count and period",
		"{algorithm: quota, max_count: 4, period: 1}":                              `unknown field "period"; there are algorithm, max_count, every, time_zone, start, epoch, name, block and block_on`,
		"{algorithm: quota, max_count: 4}":                                         "the quota must have max_count and every",
		"{algorithm: quota, algorithm: quota, max_count: 4, every: day}":           `"algorithm" is in line 4 already`,
		"{algorithm: fixed_window, max_burst: 4, period: 1}":                       `unknown field "max_burst"; did you mean max_count? There are algorithm, max_count, period, name, block and block_on`,
		"{algorithm: token_bucket, capacity: 4, refill: 0, period: 1}":             "refill must be at least 1, got 0",
		"{algorithm: token_bucket, capacity: 0, refill: 1, period: 1}":             "capacity must be at least 1, got 0",
		"{algorithm: token_bucket, capacity: 1, refill: -1, period: 1}":            "refill must be at least 1, got -1",
		"{algorithm: fixed_window, max_count: 0, period: 1}":                       "max_count must be at least 1, got 0",
		"{algorithm: fixed_window, max_count: 1, period: 0}":                       "period must be at least 1, got 0",
		"{algorithm: sliding_window, max_count: 4097, period: 1}":                  "max_count of a sliding_window must be at most 4096, got 4097; an approximate_window has a larger one",
		"{algorithm: quota, max_count: 0, every: day}":                             "max_count must be at least 1, got 0",
		"{algorithm: quota, max_count: 1, every: Day}":                             `every must be second, minute, hour, day, week, month or year, got "Day"`,
		"{algorithm: quota, max_count: 1, every: [day]}":                           `every must be second, minute, hour, day, week, month or year, got ""`,
		"{algorithm: quota, max_count: 1, every: month, start: 32}":                "start of a month must be a day from 1 to 31, got '32'",
		"{algorithm: quota, max_count: 1, every: month, start: }":                  "start must be text; write it in quotes",
		"{algorithm: quota, max_count: 1, every: day, epoch: 1}":                   `epoch must be true or false, got "1"`,
		"{algorithm: quota, max_count: 1, every: day, time_zone: Europe/Berlino}":  "unknown time zone 'Europe/Berlino'; use an IANA name, such as Europe/Berlin",
		"{algorithm: quota, max_count: 1, every: hour, time_zone: Europe/Berlin}":  "a time zone requires windows of a day or longer; use DAY, WEEK, MONTH or YEAR, or leave out the zone",
		"{algorithm: quota, max_count: 1, every: day, name: }":                     "name must be text; write it in quotes",
		"{algorithm: quota, max_count: 1, every: day, name: ''}":                   "name must not be empty; leave it out for none",
		"{algorithm: quota, max_count: 1, every: day, name: a b}":                  "a rule's name must be 1 to 64 letters, digits, dots, hyphens and underscores",
		"{algorithm: quota, max_count: 1, every: day, name: !!binary ?}":           "name is !!binary, but not in base64",
		"{algorithm: funnel, max_burst: 1, count: 1, period: 1m, name: a, max: 1}": `unknown field "max"; there are algorithm, max_burst or capacity, count, period, name, block and block_on`,
		"{algorithm: fixed_window, max_count: 1, period: 1, block: 0}":             "block must be 1 to 4611686018 seconds, got 0",
		"{algorithm: fixed_window, max_count: 1, period: 1, block: 4611686019}":    "block must be 1 to 4611686018 seconds, got 4611686019",
		"{algorithm: fixed_window, max_count: 1, period: 1, block: 1500ms}":        `block must be whole seconds, such as 60, 60s, 1m, 24h, 1d or 1w, got "1500ms"`,
		"{algorithm: fixed_window, max_count: 1, period: 1, block_on: each}":       "block_on needs block, the time for which the rule shuts out, such as 15m",
		"{algorithm: quota, max_count: 1, every: day, block: 1h, block_on: Each}":  `block_on must be first, for one time from the denial that begins it, or each, for that time anew with every denial, got "Each"`,
		"{algorithm: fixed_window, max_count: 1, period: 9223372036854775807}":     "the period is more than 2^62 ns (146 years); use a smaller one",
		"{algorithm: funnel, max_burst: 9223372036854775807, count: 1, period: 1}": "the funnel would take more than 2^62 ns (146 years) to drain; use a smaller max_burst or period, or a larger count",
	} {
		text := "limits:\n  a:\n    rules:\n    - " + rule + "\n"
		if _, err := parse(text); err == nil || err.Error() != "f:4: "+want {
			t.Errorf("%s: got %v, want f:4: %s", rule, err, want)
		}
	}
}

// TestOverrideErrors: the fields of a limit with a rule begin in line 4.
func TestOverrideErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fields, want string }{
		{"rules: []", "f:4: a limit must have 1 to 16 rules, got 0"},
		{"rules: 1", "f:4: rules must be a list"},
		{
			"rules:\n    - {algorithm: fixed_window, max_count: 1, period: 1m}\n    - {algorithm: fixed_window, max_count: 2, period: 60}",
			"f:6: the rule in line 5 is 'fixed_window 60', too, by which their state is known; give one of them a name",
		},
		{
			"rules:\n    - {algorithm: fixed_window, max_count: 1, period: 1m, name: x}\n    - {algorithm: quota, max_count: 2, every: day, name: x}",
			"f:6: the rule in line 5 has the name x, too; give one of them another",
		},
		{"plan: gold", `f:4: unknown plan "gold"; there are free, plus`},
		{"plan: [gold]", "f:4: plan must be text; write it in quotes"},
		{"deny: true\n    near: 0", `f:5: near must be above 0 and at most 1, such as 0.8, got "0"`},
		{"deny: true\n    unit: eur", `f:5: unit must be usd, of which integers are millionths, or be left out, got "eur"`},
		{"deny: true\n    unit: [usd]", `f:5: unit must be usd, of which integers are millionths, or be left out, got ""`},
		{"deny: true\n    max_reservation: 50%", `f:5: max_reservation must be above 0 and at most 1, such as 0.5, got "50%"`},
		{"deny: true\n    max_reservation: 0", `f:5: max_reservation must be above 0 and at most 1, such as 0.5, got "0"`},
		{"deny: true\n    max_reservation: 1.01", `f:5: max_reservation must be above 0 and at most 1, such as 0.5, got "1.01"`},
		{"deny: true\n    near: NaN", `f:5: near must be above 0 and at most 1, such as 0.8, got "NaN"`},
		{"deny: true\n    overrides: {}", "f:5: overrides must be a list"},
		{"deny: true\n    overrides: [a]", "f:5: an override must be a mapping"},
		{"deny: true\n    overrides: [{unlimited: true}]", "f:5: an override must have keys or a pattern"},
		{"deny: true\n    overrides: [{keys: [a], pattern: b, unlimited: true}]", "f:5: an override has keys or a pattern, not both; write two overrides"},
		{"deny: true\n    overrides: [{keys: [], unlimited: true}]", "f:5: keys must not be empty; write at least one, such as [acme]"},
		{"deny: true\n    overrides: [{keys: a, unlimited: true}]", "f:5: keys must be a list"},
		{"deny: true\n    overrides: [{keys: [~], unlimited: true}]", "f:5: a key must be text; write it in quotes"},
		{"deny: true\n    overrides: [{keys: [{a: b}], unlimited: true}]", "f:5: a key must be text; write it in quotes"},
		{"deny: true\n    overrides: [{keys: [[a, ~]], unlimited: true}]", "f:5: a part of a key must be text; write it in quotes"},
		{"deny: true\n    overrides: [{keys: [[a, [b]]], unlimited: true}]", "f:5: a part of a key must be text; write it in quotes"},
		{"deny: true\n    overrides: [{keys: [[]], unlimited: true}]", "f:5: a key of parts must have 1 to 8 of them, such as [acme, /v1/x], got 0"},
		{"deny: true\n    overrides: [{keys: [[a, a, a, a, a, a, a, a, a]], unlimited: true}]", "f:5: a key of parts must have 1 to 8 of them, such as [acme, /v1/x], got 9"},
		{"deny: true\n    overrides: [{keys: [[a, " + strings.Repeat("b", 4096) + "]], unlimited: true}]", "f:5: the parts of a key must be at most 4096 bytes long, got 4097"},
		{"deny: true\n    overrides:\n    - {keys: [a, '1:a,1:b'], deny: true}\n    - {keys: [[a]], plan: free}", `f:7: the key "a" has an override in line 6 already`},
		{"deny: true\n    overrides:\n    - {keys: [a, '1:a,1:b'], deny: true}\n    - {keys: [[a, b]], plan: free}", `f:7: the key "1:a,1:b" has an override in line 6 already`},
		{"deny: true\n    overrides: [{keys: [a]}]", "f:5: an override must have rules, plan, deny: true or unlimited: true"},
		{"deny: true\n    overrides: [{keys: [a], plan: free, deny: true}]", "f:5: an override has both plan and deny; keep one of them"},
		{"deny: true\n    overrides: [{keys: [a], windows: []}]", `f:5: unknown field "windows"; there are keys, pattern, rules, plan, deny and unlimited`},
		{"deny: true\n    overrides:\n    - {keys: [a, 7], deny: true}\n    - {keys: ['7'], plan: free}", `f:7: the key "7" has an override in line 6 already`},
		{"deny: true\n    overrides:\n    - {pattern: a*, deny: true}\n    - {pattern: a*, plan: free}", `f:7: the pattern "a*" has an override in line 6 already`},
		{"deny: true\n    overrides: [{pattern: '', deny: true}]", "f:5: pattern must not be empty; '*' matches every key"},
		{"deny: true\n    overrides: [{pattern: " + strings.Repeat("a", 1025) + ", deny: true}]", "f:5: pattern must be at most 1024 bytes long, got 1025"},
		{"deny: true\nplans: {}", `f:5: "plans" is in line 1 already`},
	} {
		text := "plans: {free: &p {rules: [{algorithm: fixed_window, max_count: 1, period: 1}]}, plus: *p}\nlimits:\n  a:\n    " + tt.fields + "\n"
		if _, err := parse(text); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.fields, err, tt.want)
		}
	}
	for plans, want := range map[string]string{
		"1":                  "f:2: plans must be a mapping",
		"{a: 1}":             "f:2: the plan a must be a mapping",
		"{a: {}}":            "f:2: the plan a must have rules",
		"{a: {rules: []}}":   "f:2: a limit must have 1 to 16 rules, got 0",
		"{a: {windows: []}}": `f:2: unknown field "windows"; there are rules`,
		"{a b: {}}":          `f:2: "a...": a plan's name must be 1 to 64 letters, digits, dots, hyphens and underscores`,
		"{}\nlimits: {}":     `f:3: "limits" is in line 1 already`,
		"{a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}}": "f:1: unknown plan \"x\"; there are a, b, c, d, e and 2 more; f:2: the plan a must have rules; f:2: the plan b must have rules; f:2: the plan c must have rules; f:2: the plan d must have rules; f:2: the plan e must have rules; f:2: the plan f must have rules; f:2: the plan g must have rules",
	} {
		limits := "limits: {}"
		if strings.Contains(want, `"x"`) {
			limits = "limits: {l: {plan: x}}"
		}
		if _, err := parse(limits + "\nplans: " + plans + "\n"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", plans, err, want)
		}
	}
	if _, err := parse("limits: {a: {plan: x}}\n"); err == nil || err.Error() != `f:1: unknown plan "x"; define it under plans` {
		t.Error(err)
	}
}
