package limitsfile

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// checkText reads definitions again that were written.
func checkText(t *testing.T, d namedlimit.Definitions) {
	t.Helper()
	for name, l := range d.Limits {
		if l.Overrides = grouped(l.Overrides); len(l.Overrides) > 0 {
			d.Limits[name] = l
		}
	}
	for _, reading := range []funnel.Reading{funnel.Burst, funnel.Capacity} {
		text := Text(d, reading)
		again, err := parseFile("f", text, reading, calendars())
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("%s\nis read as %+v, %v\nwant %+v", text, again, err, d)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	d, err := parse(everything)
	if err != nil {
		t.Fatal(err)
	}
	checkText(t, d)
	const want = `limits:
  api:
    rules:
      - {algorithm: funnel, max_burst: 99, count: 100, period: 1m}
      - {algorithm: funnel, max_burst: 99, count: 100, period: 1m, name: again}
      - {algorithm: token_bucket, capacity: 7, refill: 5, period: 30s}
      - {algorithm: fixed_window, max_count: 8, period: 1h}
      - {algorithm: sliding_window, max_count: 4096, period: 1h}
      - {algorithm: approximate_window, max_count: 1000000, period: 24h}
      - {algorithm: quota, max_count: 1000000, every: month, time_zone: Europe/Berlin, start: "15", name: monthly}
      - {algorithm: quota, max_count: 1, every: day, start: "06:00"}
      - {algorithm: quota, max_count: 2, every: year, start: "02-29"}
      - {algorithm: quota, max_count: 3, every: hour, epoch: true, name: "1"}
    overrides:
      - {keys: [acme, "42", "0x10", "true", "1.50", "2024-01-01", "null", "", !!binary "/w==",
          [acme, "7"], "6:4:acme", "1:"], plan: enterprise}
      - {pattern: "trial-*", rules: [{algorithm: sliding_window, max_count: 10, period: 1m}]}
      - {keys: [mallory], deny: true}
      - {pattern: "7?", unlimited: true}
    shadow: true
    near: 0.95
  by-plan:
    plan: free
    near: 1
  closed:
    deny: true
    overrides:
      - {keys: [a], plan: free}
  old:
    rules:
      - {algorithm: funnel, max_burst: 0, count: 1, period: 1s}
  open:
    unlimited: true
plans:
  enterprise:
    rules:
      - {algorithm: token_bucket, capacity: 1000, refill: 1000, period: 1m}
  free:
    rules:
      - {algorithm: funnel, max_burst: 0, count: 1, period: 1s}
`
	if got := string(Text(d, funnel.Burst)); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := string(Text(namedlimit.Definitions{}, funnel.Burst)); got != "limits: {}\n" {
		t.Errorf("none: got %q", got)
	}
}

// TestTextGroups: keys with equal policies are in one override, in lines of bounded length. An unknown plan
// is written as its rules.
func TestTextGroups(t *testing.T) {
	t.Parallel()
	l := namedlimit.Definition{Name: "a", Policy: namedlimit.Policy{Constant: limiter.Unlimited}, Near: namedlimit.DefaultNear}
	gone := namedlimit.Policy{Plan: "gone", Rules: []namedlimit.Rule{window(1, 1, 1)}}
	for i := range 30 {
		policy := namedlimit.Policy{Constant: limiter.Deny}
		if i%10 == 5 {
			policy = gone
		}
		l.Overrides = append(l.Overrides, namedlimit.Override{Keys: []string{fmt.Sprint("key", i)}, Policy: policy})
	}
	const want = `limits:
  a:
    unlimited: true
    overrides:
      - {keys: [key0, key1, key2, key3, key4, key6, key7, key8, key9, key10, key11, key12, key13,
          key14, key16, key17, key18, key19, key20, key21, key22, key23, key24, key26, key27, key28,
          key29], deny: true}
      - {keys: [key5, key15, key25], rules: [{algorithm: funnel, max_burst: 0, count: 1, period: 1s}]}
`
	text := Text(defined(l), funnel.Burst)
	if string(text) != want {
		t.Errorf("got\n%s", text)
	}
	if d, err := parse(want); err != nil || len(d.Limits["a"].Overrides[0].Keys) != 27 {
		t.Errorf("%+v, %v", d, err)
	}
	if len(l.Overrides[0].Keys) != 1 {
		t.Error("the definitions were changed")
	}
}

// TestTextOfLongKey: a file has a key of many parts as one text, if their list would be refused as too long.
func TestTextOfLongKey(t *testing.T) {
	t.Parallel()
	deny := namedlimit.Policy{Constant: limiter.Deny}
	l := namedlimit.Definition{Name: "a", Policy: deny, Near: namedlimit.DefaultNear}
	l.Overrides = []namedlimit.Override{{Keys: []string{string(namedlimit.AppendKey(nil, "a", strings.Repeat("b", 4096)))}, Policy: deny}}
	checkText(t, defined(l))
}

// TestTextOfAny writes and reads random definitions.
func TestTextOfAny(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := random{rand.New(rand.NewPCG(seed, 7))}
		checkText(t, r.definitions())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type random struct{ *rand.Rand }

func (r random) of(words ...string) string { return words[r.IntN(len(words))] }

func (r random) text() string {
	const letters = "aZ0 :#-,[]{}&*!|>'\"%@`\\\n\t\r\x00\x7f\u00e9\u2028\ufeff\U0001f600?~=<.+"
	all := []rune(letters)
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteRune(all[r.IntN(len(all))])
	}
	return b.String() + r.of("", "", "", "\xff", "true", "- ", "null", "1e3")
}

// key returns a key, some of them of parts.
func (r random) key() string {
	parts := make([]string, 1+r.IntN(2)*r.IntN(10))
	for i := range parts {
		parts[i] = r.text()
	}
	return string(namedlimit.AppendKey(nil, parts...))
}

func (r random) name() string {
	return r.of("on", "123", "1.5", "-", "a", "NULL", "_", ".inf", "x-y.z") + r.of("", "1", "-")
}

func (r random) rule() namedlimit.Rule {
	u := namedlimit.Rule{Algorithm: namedlimit.Algorithm(r.IntN(int(namedlimit.Algorithms))), Name: r.name(), Capacity: 1 + r.Int64N(4000)}
	switch u.Algorithm {
	case namedlimit.Quota:
		u.Calendar.Every = calendar.Every(r.IntN(int(calendar.Everies)))
		if u.Calendar.Every < calendar.Day {
			u.Calendar.Epoch = r.IntN(2) == 0
			break
		}
		u.Calendar.Zone = r.of("", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5")
		u.Calendar.Start = calendar.Start(r.IntN(7))
	case namedlimit.Funnel, namedlimit.TokenBucket:
		u.Count = 1 + r.Int64N(1000)
		fallthrough
	default:
		u.PeriodSec = []int64{1, 59, 60, 3600, 3601, 86400, 1 << 20}[r.IntN(7)]
	}
	if r.IntN(3) == 0 {
		u.BlockSec, u.BlockEach = []int64{1, 90, 900, 86400, 4611686018}[r.IntN(5)], r.IntN(2) == 0
	}
	return u
}

// rules returns rules of different names.
func (r random) rules() (rules []namedlimit.Rule) {
	names := map[string]bool{}
	for range 1 + r.IntN(3) {
		if u := r.rule(); !names[u.Name] {
			names[u.Name] = true
			rules = append(rules, u)
		}
	}
	return rules
}

func (r random) policy(plans map[string][]namedlimit.Rule) namedlimit.Policy {
	switch r.IntN(4) {
	case 0:
		return namedlimit.Policy{Constant: limiter.Deny}
	case 1:
		return namedlimit.Policy{Constant: limiter.Unlimited}
	case 2:
		for name, rules := range plans {
			return namedlimit.Policy{Plan: name, Rules: rules}
		}
	}
	return namedlimit.Policy{Rules: r.rules()}
}

func (r random) definitions() namedlimit.Definitions {
	d := defined()
	for range r.IntN(3) {
		d.Plans[r.name()] = r.rules()
	}
	for range r.IntN(4) {
		l := namedlimit.Definition{Name: r.name(), Policy: r.policy(d.Plans), Shadow: r.IntN(2) == 0, Near: namedlimit.DefaultNear}
		if r.IntN(2) == 0 {
			l.Near = 1 - r.Float64()
		}
		if r.IntN(4) == 0 {
			l.Unit, l.MaxReservation = namedlimit.USD, 1-r.Float64()
		}
		seen := map[string]bool{}
		for range r.IntN(6) {
			o := namedlimit.Override{Policy: r.policy(d.Plans)}
			if r.IntN(3) == 0 {
				o.Pattern = r.text() + "*"
				if seen["*"+o.Pattern] {
					continue
				}
				seen["*"+o.Pattern] = true
			}
			for range 1 + r.IntN(30) {
				if key := r.key(); o.Pattern == "" && !seen[key] {
					seen[key] = true
					o.Keys = append(o.Keys, key)
				}
			}
			if o.Pattern != "" || len(o.Keys) > 0 {
				l.Overrides = append(l.Overrides, o)
			}
		}
		d.Limits[l.Name] = l
	}
	return d
}
