package failover

import (
	"strings"
	"testing"
	"time"

	"cellserver/lab/clients/internal/report"
)

func TestBetween(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms ...int) (times []time.Time) {
		for _, n := range ms {
			times = append(times, began.Add(time.Duration(n)*time.Millisecond))
		}
		return times
	}
	for _, test := range []struct {
		name                 string
		oldLeader, newLeader []time.Time
		without, both        int
	}{
		{"one after the other", at(-5, 0), at(1300, 1305), 1300, 0},
		{"the old leader goes on", at(-5, 0, 5, 10, 40), at(7, 12), 2, 33},
		{"the new one led before", at(-5, 0), at(-900, 700), 700, 0},
		{"no new one", at(0), at(-900), 0, 0},
	} {
		without, both := between(began, test.oldLeader, test.newLeader)
		if without.Milliseconds() != int64(test.without) || both.Milliseconds() != int64(test.both) {
			t.Errorf("%s: %s without, %s both; want %d and %d ms", test.name, without, both, test.without, test.both)
		}
	}
}

func TestAccount(t *testing.T) {
	for _, test := range []struct {
		account           Account
		forgiven, doubled int
	}{
		{Account{Allowed: 10, Charged: 10}, 0, 0},
		{Account{Allowed: 10, Unknown: 2, Charged: 12}, 0, 0},
		{Account{Allowed: 10, Unknown: 2, Charged: 9}, 1, 0},
		{Account{Allowed: 10, Unknown: 2, Charged: 13}, 0, 1},
	} {
		if f, d := test.account.Forgiven(), test.account.Doubled(); f != test.forgiven || d != test.doubled {
			t.Errorf("%+v: %d forgiven, %d doubled; want %d, %d", test.account, f, d, test.forgiven, test.doubled)
		}
	}
}

func TestCheck(t *testing.T) {
	kill := func(a Account) Result { return Result{Failovers: []Failover{{Accounts: []Account{a}}}} }
	planned := func(a Account) Result { return Result{Planned: []Account{a}} }
	for _, test := range []struct {
		name   string
		result Result
		want   string
	}{
		{"a crash may forgive", kill(Account{Library: "a", Allowed: 10, Charged: 9}), ""},
		{"a crash must not double", kill(Account{Library: "a", Allowed: 10, Charged: 11}), "kill 1: a: 10 calls were allowed"},
		{"a planned one must not forgive", planned(Account{Library: "a", Allowed: 10, Charged: 9}), "planned failovers: a: 10"},
		{"an unknown one may count", planned(Account{Library: "a", Allowed: 10, Unknown: 1, Charged: 11}), ""},
	} {
		err := test.result.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestReport(t *testing.T) {
	section := func(longest float64) []report.Section {
		return []report.Section{{Library: "go-redis", LongestMs: longest, Refused: 1, Errors: map[string]int{"READONLY": 1}}}
	}
	text := Report([]Result{{Kind: "cellserver", Planned: []Account{{Library: "go-redis", Allowed: 7, Charged: 7}}, Failovers: []Failover{
		{Without: 1300 * time.Millisecond, Sections: section(1500), Accounts: []Account{{Library: "go-redis", Allowed: 10, Charged: 8}}},
		{Without: 1100 * time.Millisecond, Sections: section(1200), Accounts: []Account{{Library: "go-redis", Allowed: 10, Charged: 9}}},
		{Planned: true, Without: 8 * time.Millisecond, Sections: section(20)},
	}}})
	for _, line := range []string{
		"| cellserver: without a leader | 2 | 1300 | 1300 |  |  |  |  |",
		"| cellserver: go-redis | 2 | 1500 | 1500 | 2 | 0 | 0 | 20 allowed, 17 charged; 3 forgiven, at most 2 at once, 0 doubled |",
		"| cellserver: without a leader | 1 | 8 | 8 |  |  |  |  |",
		"| cellserver: go-redis | 1 | 20 | 20 | 1 | 0 | 0 | 7 allowed, 7 charged; 0 forgiven, at most 0 at once, 0 doubled |",
		"cellserver,      3 times: go-redis: READONLY",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}
