package limitsfile

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

const spendFile = `limits:
  spend:
    rules:
      - {algorithm: quota, max_count: 50000000, every: month}
      - {algorithm: fixed_window, max_count: 4000000, period: 1h}
    overrides:
      - {keys: [big], plan: gold}
      - {keys: [own], rules: [{algorithm: fixed_window, max_count: 100, period: 1h}]}
      - {pattern: p*, rules: [{algorithm: fixed_window, max_count: 3, period: 1h}]}
      - {keys: [out], deny: true}
    unit: usd
    max_reservation: 0.25
plans:
  gold: {rules: [{algorithm: quota, max_count: 80000000, every: month}]}
`

// withOptions are definitions by commands that have all options.
func withOptions() []namedlimit.Definition {
	day := byRules(namedlimit.Rule{Algorithm: namedlimit.Quota, Capacity: 5_000_000, Calendar: calendar.Spec{Every: calendar.Day}})
	return []namedlimit.Definition{
		{Name: "a", Policy: day, Near: namedlimit.DefaultNear, Unit: namedlimit.USD, MaxReservation: 0.125},
		{Name: "b", Policy: day, Near: namedlimit.DefaultNear, Unit: namedlimit.USD, Shadow: true},
		{Name: "c", Policy: day, Near: namedlimit.DefaultNear, MaxReservation: 1},
		{Name: "d", Policy: day, Near: namedlimit.DefaultNear},
	}
}

func TestOptionsOfAFile(t *testing.T) {
	t.Parallel()
	d, err := parse(spendFile)
	must(t, err)
	if l := d.Limits["spend"]; l.Unit != namedlimit.USD || l.MaxReservation != 0.25 {
		t.Errorf("got %+v", l)
	}
	written := string(Text(d, funnel.Burst))
	if again, err := parse(written); err != nil || !reflect.DeepEqual(again, d) || !strings.Contains(written, "    unit: usd\n    max_reservation: 0.25\n") {
		t.Errorf("written as %s, %v", written, err)
	}
	plain, err := parse(strings.ReplaceAll(strings.ReplaceAll(spendFile, "    unit: usd\n", ""), "    max_reservation: 0.25\n", ""))
	must(t, err)
	for _, tt := range []struct {
		from, to namedlimit.Definitions
		want     []string
	}{
		{plain, d, []string{"max_reservation: none -> 0.25", "unit: none -> usd"}},
		{d, plain, []string{"max_reservation: 0.25 -> none", "unit: usd -> none"}},
		{d, d, nil},
		{namedlimit.Definitions{}, namedlimit.Definitions{Limits: d.Limits}, []string{"added: QUOTA 50000000 MONTH FIXEDWINDOW 4000000 3600, in usd, max_reservation 0.25, 4 overrides"}},
	} {
		var got []string
		for _, change := range Diff(tt.from, tt.to, funnel.Burst) {
			got = append(got, change.Text)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestOptionsDecide: overrides and plans have the limit's unit, and its share of their own smallest capacity,
// also after a reload.
func TestOptionsDecide(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.yml")
	r := New(config(func(c *Config) { c.File = path }))
	load := func(text string) {
		t.Helper()
		write(t, path, text)
		must(t, r.Reload())
	}
	load(spendFile)
	_, err := r.Override(namedlimit.KeyOverride{Limit: "spend", Key: "cmd", Policy: byRules(window(40, 1, 60), window(8, 1, 1))})
	must(t, err)
	_, err = r.Override(namedlimit.KeyOverride{Limit: "spend", Key: "planned", Policy: namedlimit.Policy{Plan: "gold"}})
	must(t, err)
	for _, tt := range []struct {
		from, to string
		want     map[string]int64
	}{
		{"", "", map[string]int64{"any": 1_000_000, "big": 20_000_000, "own": 25, "px": 1, "cmd": 2, "planned": 20_000_000, "out": 0}},
		{"0.25", "0.5", map[string]int64{"any": 2_000_000, "big": 40_000_000, "own": 50, "px": 1, "cmd": 4, "planned": 40_000_000, "out": 0}},
		{"max_reservation: 0.25", "near: 0.8", map[string]int64{"any": 0, "big": 0, "own": 0, "px": 0, "cmd": 0, "planned": 0, "out": 0}},
	} {
		load(strings.Replace(spendFile, tt.from, tt.to, 1))
		for key, want := range tt.want {
			if n := named(r.Lookup([]byte("spend")), key); n.MaxHold != want || n.Unit != namedlimit.USD {
				t.Errorf("%s -> %s: %s holds at most %d %s, want %d", tt.from, tt.to, key, n.MaxHold, n.Unit, want)
			}
		}
	}
}

// TestKeptOptions: definitions by commands keep their options, in a format that earlier versions refuse.
func TestKeptOptions(t *testing.T) {
	t.Parallel()
	const text = "cellserver limits, format 3\na QUOTA 5000000 DAY UNIT usd MAXRESERVATION 0.125\n" +
		"b QUOTA 5000000 DAY UNIT usd shadow\nc QUOTA 5000000 DAY MAXRESERVATION 1\nd QUOTA 5000000 DAY\n"
	dir := disktest.New()
	must(t, keeperIn(dir).Keep(withOptions()))
	if got := string(dir.Contents(KeptName)); got != string(sealed(text)) {
		t.Errorf("kept as %s", got)
	}
	if got, err := keeperIn(dir).Load(); err != nil || !reflect.DeepEqual(got, withOptions()) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{
		"3\na DENY UNIT eur", "3\na DENY unit usd", "3\na DENY UNIT USD", "3\na DENY UNIT", "3\na DENY MAXRESERVATION 0.50", "3\na DENY MAXRESERVATION 2",
		"3\na DENY shadow UNIT usd", "3\na DENY MAXRESERVATION 1 UNIT usd", "3\na DENY UNIT usd UNIT usd", "2\na DENY UNIT usd", "1\na 5 5 60 UNIT usd",
	} {
		if got, err := parseKept(sealed("cellserver limits, format " + bad + "\n")); !errors.Is(err, persist.ErrDamaged) {
			t.Errorf("%s: got %+v, %v", bad, got, err)
		}
	}
}

// TestReplicatedOptions: a replica has the leader's options and digest.
func TestReplicatedOptions(t *testing.T) {
	t.Parallel()
	leader, replica := New(config()), New(config())
	Replicated{leader}.Record(true)
	Replicated{leader}.TakeRecorded(true)
	for _, d := range withOptions() {
		mustSet(t, leader, d)
	}
	_, err := leader.Override(namedlimit.KeyOverride{Limit: "a", Key: "k", Policy: byRules(window(16, 1, 60))})
	must(t, err)
	for _, text := range (Replicated{leader}).TakeRecorded(true) {
		must(t, Replicated{replica}.Apply(text))
	}
	for _, d := range withOptions() {
		if !has(replica, d) {
			t.Errorf("the replica has %+v, not %+v", replica.Lookup([]byte(d.Name)), d)
		}
	}
	if n := named(replica.Lookup([]byte("a")), "k"); n.MaxHold != 2 || n.Unit != namedlimit.USD || n.Constant != limiter.ByRules {
		t.Errorf("the override holds at most %d %s", n.MaxHold, n.Unit)
	}
	if !reflect.DeepEqual(leader.Digests(), replica.Digests()) {
		t.Error("the digests differ")
	}
	for _, d := range withOptions()[:3] {
		d.Unit, d.MaxReservation = "", 0
		mustSet(t, replica, d)
	}
	if reflect.DeepEqual(leader.Digests(), replica.Digests()) {
		t.Error("the digests do not have the options")
	}
}
