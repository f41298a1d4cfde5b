package throttle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
)

// spenders formats the keys of a limit that have spent most.
func (b *budgets) spenders(limit string) string {
	b.Helper()
	l := b.r.Engine.Config.NamedLimits.Lookup([]byte(limit))
	if l == nil {
		b.Fatal("no limit " + limit)
	}
	all, _ := l.Spenders().Top()
	texts := make([]string, len(all))
	for i, of := range all {
		texts[i] = fmt.Sprintf("%d/%s=%d", of.DB, of.Name, of.Units)
	}
	return strings.Join(texts, " ")
}

func (b *budgets) spendMost(limit, want string) {
	b.Helper()
	if got := b.spenders(limit); got != want {
		b.Errorf("%s: %q have spent, want %q", limit, got, want)
	}
}

// TestSpendersBySettlements: in each form a settlement counts its units once: less, as much and more than was
// held. Holds, checks and debits count nothing.
func TestSpendersBySettlements(t *testing.T) {
	for form, write := range holdForms() {
		t.Run(form, func(t *testing.T) {
			b := newBudgets(t, "l FIXEDWINDOW 100 864000", "other FIXEDWINDOW 50 864000")
			say := func(call, want string) {
				t.Helper()
				commandstest.ExpectLike(t, b.s, write(call), "…"+want)
			}
			say("CL.MRESERVE 2 l k 30 other o 40 TTL 10s ID a", "$1\r\na\r\n")
			say("CL.CHECK l k 5 DEBIT", "")
			say("CL.CHECK l k 5", "")
			b.spendMost("l", "")
			say("CL.MCOMMIT a 2 l k 10 other o 45", settled)
			b.spendMost("l", "0/l:k=10")
			b.spendMost("other", "0/other:o=45")
			say("CL.MCOMMIT a 2 l k 10 other o 45", none)
			b.spendMost("l", "0/l:k=10")
			say("CL.MRESERVE 1 l k 5 TTL 10s ID b", "$1\r\nb\r\n")
			say("CL.MCOMMIT b 1 l k 0", settled)
			b.spendMost("l", "0/l:k=10")
			say("CL.MRESERVE 1 l k 5 TTL 10s ID c", "$1\r\nc\r\n")
			b.wait(11 * time.Second)
			b.spendMost("l", "0/l:k=10")
			say("CL.MCOMMIT c 1 l k 7", late)
			b.spendMost("l", "0/l:k=17")
		})
	}
}

// TestSpendersOfUndone: a settlement that is undone has counted nothing.
func TestSpendersOfUndone(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000")
	b.hold("1 l k 30 TTL 100s ID a")
	b.expect("WATCH l:k", "+OK\r\n")
	other := b.r.Session()
	commandstest.Say(t, other, "CL.CHECK l k 1\r\n")
	commandstest.ExpectLike(t, b.s, "MULTI\r\nCL.MCOMMIT a 1 l k 10\r\nEXEC\r\n", "…*-1\r\n")
	b.spendMost("l", "")
	b.expect("CL.MCOMMIT a 2 l x 10 l k 10", otherPairs)
	b.spendMost("l", "")
	b.expect("CL.MCOMMIT a 1 l k 10", settled)
	b.spendMost("l", "0/l:k=10")
}

// TestSpendersOfOverrides: what an override's rules take counts, and what no rule takes does not, nor a hold
// that was made before.
func TestSpendersOfOverrides(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000")
	b.expect("CL.LIMIT OVERRIDE l big FIXEDWINDOW 1000 864000", "+OK\r\n")
	b.expect("CL.LIMIT OVERRIDE l free UNLIMITED", "+OK\r\n")
	b.hold("2 l big 500 l free 500 TTL 10s ID a")
	b.expect("CL.MCOMMIT a 2 l big 600 l free 600", settled)
	b.spendMost("l", "0/l:big=600")
	b.hold("1 l k 30 TTL 10s ID b")
	b.expect("CL.LIMIT OVERRIDE l k UNLIMITED", "+OK\r\n")
	b.expect("CL.MCOMMIT b 1 l k 50", settled)
	b.spendMost("l", "0/l:big=600 0/l:k=30")
}

// TestSpendersOfLostPairs: the debit of a pair that has lost its hold counts, and that of a shadow, too.
func TestSpendersOfLostPairs(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000", "trial FIXEDWINDOW 10 864000 SHADOW")
	b.hold("2 l k 30 trial s 30 TTL 10s ID a")
	b.expect("DEL l:k", ":1\r\n")
	b.expect("CL.MCOMMIT a 2 l k 20 trial s 40", settled)
	b.spendMost("l", "0/l:k=20")
	b.spendMost("trial", "0/trial:s=40")
}

// TestSpendersOfNames: they go with the limit, and nothing else.
func TestSpendersOfNames(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000")
	b.hold("1 l k 30 TTL 10s ID a")
	b.expect("CL.MCOMMIT a 1 l k 10", settled)
	for _, line := range []string{"CL.LIMIT SET l FIXEDWINDOW 200 864000", "CL.LIMIT OVERRIDE l x DENY", "CONFIG RESETSTAT", "FLUSHALL"} {
		b.expect(line, "+OK\r\n")
		b.spendMost("l", "0/l:k=10")
	}
	b.hold("1 l k 30 TTL 10s ID b")
	b.expect("CL.LIMIT DEL l", ":1\r\n")
	b.expect("CL.MCOMMIT b 1 l k 10", settled)
	b.expect("CL.LIMIT SET l FIXEDWINDOW 100 864000", "+OK\r\n")
	b.spendMost("l", "")
	b.expect("SELECT 3", "+OK\r\n")
	b.hold("1 l k 30 TTL 10s ID c")
	b.expect("CL.MCOMMIT c 1 l k 10", settled)
	b.spendMost("l", "3/l:k=10")
}

// TestSpendersOverRemote: a settlement that a conflict repeats counts once.
func TestSpendersOverRemote(t *testing.T) {
	on, file := storetest.NewRemote(shard.New()), filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(file, []byte("limits: {l: {rules: [{algorithm: fixed_window, max_count: 50, period: 86400}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := commandstest.New(func(c *commands.Config) { c.Store = on }, withLimits(nil, file))
	b := &budgets{t, r, r.Session()}
	b.expect("CL.LIMIT RELOAD", "+OK\r\n")
	for i, write := range []func(call string) string{
		func(call string) string { return call + "\r\n" },
		func(call string) string { return "MULTI\r\n" + call + "\r\nEXEC\r\n" },
	} {
		id := b.hold("1 l a 10 TTL 10m")
		on.Conflict(3)
		commandstest.ExpectLike(t, b.s, write("CL.MCOMMIT "+id+" 1 l a 4"), "…"+settled)
		b.spendMost("l", fmt.Sprintf("0/l:a=%d", 4*(i+1)))
		b.expect("CL.LIMIT RELOAD", "+OK\r\n")
	}
	id := b.hold("1 l a 10 TTL 10m")
	on.Fail(store.Failure{Line: storetest.LineDown})
	b.expect("CL.MCOMMIT "+id+" 1 l a 4", "-"+storetest.LineDown+"\r\n")
	b.spendMost("l", "0/l:a=8")
}
