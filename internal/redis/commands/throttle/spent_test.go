package throttle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/store"
)

// spent compares what was spent, by limit.
func (b *budgets) spentAfter(after, want string) {
	b.Helper()
	sums := map[string]int64{}
	for _, of := range b.r.Config.Store.(store.Spender).Spent("").Sorted() {
		sums[of.Limit] += of.Units
	}
	if got := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(sums), "map["), "]"); got != want {
		b.Errorf("after %s: spent %q, want %q", after, got, want)
	}
}

// TestSpent: holds, what they return and settle, and debits under a limit's name are spent, and nothing else.
func TestSpent(t *testing.T) {
	b := newBudgets(t, "l FUNNEL 99 1 10000", "other FIXEDWINDOW 50 864000", "shade FIXEDWINDOW 10 864000 SHADOW", "exact SLIDINGWINDOW 50 864000")
	b.expect("CL.LIMIT OVERRIDE l no DENY", "+OK\r\n")
	b.expect("CL.LIMIT OVERRIDE l all UNLIMITED", "+OK\r\n")
	for _, step := range []struct{ call, want string }{
		{"CL.CHECK l a 5", ""},
		{"CL.CHECK l a -2", ""},
		{"CL.CHECK l a 60 AT_MOST", ""},
		{"CL.CHECK exact a 5 DEBIT", ""},
		{"CL.CHECK l no 5 DEBIT", ""},
		{"CL.CHECK l all 5 DEBIT", ""},
		{"CL.FIXEDWINDOW l:b 50 60 5 DEBIT", ""},
		{"CL.THROTTLE l:c 50 1 60 5 DEBIT", ""},
		{"CL.RESERVE l:d 50 1 60 5 TTL 10000", ""},
		{"CL.MRESERVE 2 l e 5 other a 51 TTL 1m", ""},
		{"CL.MRESERVE 1 l no 5 TTL 1m", ""},
		{"CL.MRESERVE 1 l all 5 TTL 1m ID all", ""},
		{"CL.CHECK l f 5 DEBIT", "l:5"},
		{"CL.CHECK l f 5000 DEBIT", "l:5005"},
		{"CL.CHECK shade a 15", "l:5005"},
		{"CL.CHECK shade a 15 DEBIT", "l:5005 shade:15"},
		{"CL.MRESERVE 1 shade a 15 TTL 1m ID s", "l:5005 shade:30"},
		{"CL.MRESERVE 2 l g 7 other g 8 TTL 1m ID x", "l:5012 other:8 shade:30"},
		{"CL.MRESERVE 2 l g 7 other g 8 TTL 1m ID x", "l:5012 other:8 shade:30"},
		{"CL.MEXTEND x 2m 2 l g other g", "l:5012 other:8 shade:30"},
		{"DEL l:g", "l:5012 other:8 shade:30"},
		{"CL.MCOMMIT x 2 l g 3 other g 9", "l:5015 other:9 shade:30"},
		{"CL.MCOMMIT x 2 l g 3 other g 9", "l:5015 other:9 shade:30"},
		{"CL.MCOMMIT s 1 shade a 1", "l:5015 other:9 shade:16"},
		{"FLUSHALL", "l:5015 other:9 shade:16"},
		{"CL.LIMIT DEL l", "l:5015 other:9 shade:16"},
		{"CL.LIMIT SET l FIXEDWINDOW 50 864000", "l:5015 other:9 shade:16"},
		{"CL.CHECK l h 1 DEBIT", "l:5016 other:9 shade:16"},
	} {
		b.say(step.call)
		b.spentAfter(step.call, step.want)
	}
}

// TestDebitsAreSpent: of new keys, of those whose units are counted in place, and of those with holds, in all
// layouts; of long names, too, which are kept elsewhere.
func TestDebitsAreSpent(t *testing.T) {
	for _, rules := range []string{
		"FUNNEL 99 1 10000", "FUNNEL 99 1 10000 FUNNEL 999 1 20000", "FIXEDWINDOW 100 864000", "SLIDINGWINDOW 100 864000 APPROX", "QUOTA 100 MONTH",
		"FIXEDWINDOW 100 864000 SHADOW", "FUNNEL 99 1 10000 BLOCK 60", "FUNNEL 99 1 10000 FIXEDWINDOW 100 864000 SLIDINGWINDOW 100 1728000 APPROX QUOTA 100 MONTH",
	} {
		b := newBudgets(t, "l "+rules)
		for _, key := range []string{"k", strings.Repeat("k", 300)} {
			want := b.sum()
			for i, units := range []int64{5, 7, 0, 1000, 3} {
				b.say(fmt.Sprintf("CL.CHECK l %s %d DEBIT", key, units))
				if want += units; b.sum() != want {
					t.Errorf("%s: debit %d of a key of %d bytes: spent %d, want %d", rules, i, len(key), b.sum(), want)
				}
			}
			b.say("CL.MRESERVE 1 l held" + key + " 4 TTL 1m")
			b.say("CL.CHECK l held" + key + " 6 DEBIT")
			if want += 4 + 6; b.sum() != want {
				t.Errorf("%s: beside a hold: spent %d, want %d", rules, b.sum(), want)
			}
		}
	}
}

// TestSpentByTime: units of a hold that nobody settles are returned once its time is over, to the day on
// which it began, and a late settle spends them again.
func TestSpentByTime(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 500 8640000")
	b.hold("1 l a 30 TTL 20h ID open")
	b.hold("1 l b 40 TTL 20h CHARGE ID charged")
	b.spentAfter("two holds", "l:70")
	b.wait(21 * time.Hour)
	b.left("l:a=500", "l:b=460")
	b.spentAfter("their time", "l:40")
	b.expect("CL.MCOMMIT open 1 l a 10", late)
	b.expect("CL.MCOMMIT charged 1 l b 45", late)
	b.spentAfter("late settles", "l:55")
	b.hold("1 l b 5 TTL 20h ID deleted")
	b.expect("CL.LIMIT DEL l", ":1\r\n")
	b.expect("CL.MCOMMIT deleted 1 l b 2", settled)
	b.spentAfter("a settle under no limit", "l:57")
	first, days := int32(commandstest.T0/int64(24*time.Hour)), b.r.Config.Store.(store.Spender).Spent("").Sorted()
	if len(days) != 2 || days[0].Day != first || days[0].Units != 55 || days[1].Day != first+1 || days[1].Units != 2 {
		t.Errorf("spent %v, from day %d on", days, first)
	}
}

// TestSpentInTransactions: what is undone spends nothing.
func TestSpentInTransactions(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000", "other FIXEDWINDOW 50 864000")
	for form, write := range holdForms() {
		b.expect("FLUSHALL", "+OK\r\n")
		before := b.sum()
		for call, want := range map[string]int64{
			"CL.CHECK l k 5 DEBIT":                           5,
			"CL.MRESERVE 2 l k 5 other o 60 TTL 1m":          0,
			"CL.MRESERVE 2 l k 5 other o 6 TTL 1m ID " + "x": 11,
		} {
			was := b.sum()
			commandstest.Say(t, b.s, write(call))
			if got := b.sum() - was; got != want {
				t.Errorf("%s: %s has spent %d, want %d", form, call, got, want)
			}
		}
		commandstest.Say(t, b.s, write("CL.MCOMMIT x 2 l k 1 other o 8"))
		if got := b.sum() - before; got != 5+1+8 {
			t.Errorf("%s: spent %d", form, got)
		}
	}
	was := b.sum()
	commandstest.Say(t, b.s, "MULTI\r\nCL.CHECK l k 5 DEBIT\r\nCL.MRESERVE 1 l k 5 TTL 1m\r\nDISCARD\r\n")
	commandstest.Say(t, b.s, "WATCH l:k\r\nCL.CHECK l k 1 DEBIT\r\nMULTI\r\nCL.CHECK l k 5 DEBIT\r\nEXEC\r\n")
	if got := b.sum() - was; got != 1 {
		t.Errorf("undone transactions have spent %d, want 1", got)
	}
}

func (b *budgets) sum() (units int64) {
	for _, of := range b.r.Config.Store.(store.Spender).Spent("").Sorted() {
		units += of.Units
	}
	return units
}
