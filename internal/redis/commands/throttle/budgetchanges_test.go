package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"cellserver/internal/test/resptest"
)

// TestLostPairs are debited what was used, if another pair has the hold still.
func TestLostPairs(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		for _, drop := range []string{"DEL other:o", "CL.RESET other:o"} {
			id := b.hold("2 l k 30 other o 40 TTL 10s")
			b.expect(drop, settled)
			b.left("other:o=500")
			b.expect("CL.MCOMMIT "+id+" 2 l k 10 other o 15", settled)
			b.left("l:k=90", "other:o=485")
			b.expect("CL.RESET l:k other:o", late)
			id = b.hold("2 l k 30 other o 40 CHARGE TTL 10s")
			b.wait(time.Minute)
			b.expect(drop, settled)
			b.expect("CL.MCOMMIT "+id+" 2 l k 10 other o 600", late)
			b.left("l:k=90", "other:o=0")
			b.expect("CL.RESET l:k other:o", late)
			id = b.hold("2 l k 30 other o 40 TTL 10s")
			b.expect("DEL l:k other:o", late)
			b.expect("CL.MCOMMIT "+id+" 2 l k 10 other o 15", none)
			b.left("l:k=100", "other:o=500")
		}
	})
}

// TestOtherPairs are an error, and nothing changes.
func TestOtherPairs(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000", "other FUNNEL 99 1 10000")
	id := b.hold("2 l k 30 other o 40 TTL 10s")
	for range 2 {
		for _, pairs := range [][2]string{
			{"1 l k 0", "1 l k"}, {"1 other o 0", "1 other o"}, {"3 l k 0 other o 0 l k2 0", "3 l k other o l k2"}, {"2 l k 0 other o2 0", "2 l k other o2"},
		} {
			b.expect("CL.MCOMMIT "+id+" "+pairs[0], otherPairs)
			b.expect("CL.MEXTEND "+id+" 10s "+pairs[1], otherPairs)
		}
		b.left("l:k2=100", "other:o2=100")
		b.wait(20 * time.Second)
	}
	b.left("l:k=100", "other:o=100")
	b.expect("CL.MCOMMIT "+id+" 2 l k 30 other o 40", late)
}

// TestHoldsOfConstants: where an override denies or allows all, nothing is held or debited.
func TestHoldsOfConstants(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000", "other FUNNEL 99 1 10000")
	b.expect("CL.LIMIT OVERRIDE l vip UNLIMITED", "+OK\r\n")
	b.expect("CL.LIMIT OVERRIDE l out DENY", "+OK\r\n")
	b.denied("2 l out 1 other o 1 TTL 30s")
	b.left("other:o=100")
	id := b.hold("2 l vip 1000000 other o 40 TTL 30s")
	b.expect("EXISTS l:vip", none)
	b.expect("CL.MCOMMIT "+id+" 2 l vip 2000000 other o 50", settled)
	b.expect("EXISTS l:vip", none)
	b.left("other:o=50")
	// What was held before is settled, and an excess is debited by the rules now in force.
	for _, policy := range []string{"UNLIMITED", "DENY"} {
		b.expect("CL.RESET l:k", resetsOf(b, "l:k"))
		id = b.hold("2 l k 30 l k2 30 TTL 30s")
		b.expect("CL.LIMIT OVERRIDE l k "+policy, "+OK\r\n")
		b.expect("CL.MCOMMIT "+id+" 2 l k 50 l k2 50", settled)
		b.expect("CL.LIMIT OVERRIDE l k DEL", settled)
		b.left("l:k=70", "l:k2=50")
		b.expect("CL.RESET l:k l:k2", late)
		id = b.hold("1 l k 30 TTL 30s")
		b.expect("CL.LIMIT OVERRIDE l k "+policy, "+OK\r\n")
		b.expect("CL.MCOMMIT "+id+" 1 l k 20", settled)
		b.expect("CL.LIMIT OVERRIDE l k DEL", settled)
		b.left("l:k=80")
		b.expect("CL.RESET l:k", settled)
		id = b.hold("1 l k 30 TTL 1s")
		b.expect("CL.LIMIT OVERRIDE l k "+policy, "+OK\r\n")
		b.wait(time.Minute)
		b.expect("CL.MCOMMIT "+id+" 1 l k 20", late)
		b.expect("CL.LIMIT OVERRIDE l k DEL", settled)
		b.left("l:k=100")
	}
}

func resetsOf(b *budgets, key string) string {
	return fmt.Sprintf(":%d\r\n", b.say("EXISTS "+key).Number)
}

// TestHoldsOfAShadow: a hold that would be denied is charged as a debit.
func TestHoldsOfAShadow(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		rules := b.say("CL.LIMIT GET l")
		policy := ""
		for i, e := range rules.Elements {
			if e.Text == "policy" {
				policy = rules.Elements[i+1].Text
			}
		}
		b.expect("CL.LIMIT SET l "+policy+" SHADOW", "+OK\r\n")
		b.hold("1 l k 90 TTL 30s ID a")
		b.hold("2 l k 60 other o 10 TTL 30s ID b")
		b.left("l:k=0", "other:o=490")
		b.expect("CL.MCOMMIT b 2 l k 5 other o 5", settled)
		b.left("l:k=5", "other:o=495")
		b.expect("CL.MCOMMIT a 1 l k 50", settled)
		b.left("l:k=45")
		got := fields(b.say("CL.LIMIT GET l"))
		if got["shadow_limited"] != 1 || got["charged_beyond"] != 1 || got["allowed"] != 1 || got["holds"] != 2 {
			b.Errorf("%v", got)
		}
	})
}

// TestHoldsAcrossDefinitions: a settle returns to the states that still exist, and debits by the rules now in
// force.
func TestHoldsAcrossDefinitions(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000 FUNNEL 99 1 10000")
	id := b.hold("1 l k 30 TTL 10m")
	b.expect("CL.LIMIT SET l FIXEDWINDOW 50 864000", "+OK\r\n") // the same state
	b.left("l:k=20")
	b.expect("CL.MCOMMIT "+id+" 1 l k 10", settled)
	b.left("l:k=40")
	b.expect("CL.RESET l:k", settled)
	id = b.hold("1 l k 30 TTL 10m")
	b.expect("CL.LIMIT SET l QUOTA 1000 YEAR", "+OK\r\n")
	b.left("l:k=1000")
	b.expect("CL.MCOMMIT "+id+" 1 l k 31", settled)
	b.left("l:k=999") // the excess
	b.expect("CL.LIMIT SET l FIXEDWINDOW 50 864000", "+OK\r\n")
	b.expect("CL.RESET l:k", settled)
	b.expect("CL.LIMIT OVERRIDE l k FUNNEL 9 1 10000", "+OK\r\n")
	id = b.hold("1 l k 8 TTL 10m")
	b.left("l:k=2")
	b.expect("CL.LIMIT OVERRIDE l k DEL", settled)
	b.left("l:k=50")
	b.expect("CL.MCOMMIT "+id+" 1 l k 3", settled)
	b.left("l:k=50")
	b.expect("CL.LIMIT OVERRIDE l k FUNNEL 9 1 10000", "+OK\r\n")
	b.left("l:k=7")
	id = b.hold("1 l k 2 TTL 10m")
	b.expect("CL.LIMIT DEL l", settled)
	b.expect("CL.MEXTEND "+id+" 20m 1 l k", settled)
	b.expect("CL.MCOMMIT "+id+" 1 l k 5", settled) // nothing is there to debit the excess from
	const noLimit = "-ERR no such limit 'l'; define it by CL.LIMIT SET or in --limits-file\r\n"
	b.expect("CL.MCOMMIT "+id+" 1 l k 1", noLimit)
	b.expect("CL.MEXTEND "+id+" 20m 1 l k", noLimit)
	b.expect("CL.MRESERVE 1 l k 1 TTL 1s", noLimit)
}

// TestExactWindowsHoldNothing, by a limit or an override; what was held before is settled.
func TestExactWindowsHoldNothing(t *testing.T) {
	b := newBudgets(t, "exact SLIDINGWINDOW 10 60 QUOTA 100 DAY", "l FUNNEL 99 1 10000")
	refused := func(name string) string {
		return "-ERR the limit '" + name + "' has an exact sliding window for this key, which can hold nothing; use approximate_window\r\n"
	}
	b.expect("CL.MRESERVE 2 l k 1 exact k 1 TTL 30s", refused("exact"))
	id := b.hold("1 l k 30 TTL 10m")
	b.expect("CL.LIMIT OVERRIDE l k SLIDINGWINDOW 10 60", "+OK\r\n")
	b.expect("CL.MRESERVE 1 l k 1 TTL 30s", refused("l"))
	b.expect("CL.MCOMMIT "+id+" 1 l k 20", settled)
	b.expect("CL.LIMIT OVERRIDE l k DEL", settled)
	b.left("l:k=80")
}

// TestExactWindowTakesExcess: of what was used beyond a hold an exact window takes what it has left.
func TestExactWindowTakesExcess(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000", "other FIXEDWINDOW 100 864000")
	id := b.hold("1 l k 20 TTL 10m")
	b.expect("CL.LIMIT OVERRIDE l k SLIDINGWINDOW 50 864000 QUOTA 40 YEAR", "+OK\r\n")
	b.expect("CL.CHECK l k 10", resptest.Ints(0, 40, 30, -1, 4067200))
	b.expect("CL.MCOMMIT "+id+" 1 l k 55", settled)
	b.expect("CL.LIMIT OVERRIDE l k SLIDINGWINDOW 50 864000", "+OK\r\n")
	b.left("l:k=5")
	id = b.hold("2 l lost 20 other o 20 TTL 10m")
	b.expect("CL.LIMIT OVERRIDE l lost SLIDINGWINDOW 50 864000", "+OK\r\n")
	b.expect("DEL l:lost", settled)
	b.expect("CL.MCOMMIT "+id+" 2 l lost 70 other o 10", settled)
	b.left("l:lost=0", "other:o=90")
}

// TestMaxReservation: a pair holds at most that share of its smallest capacity, and the rest is an excess.
func TestMaxReservation(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000 FUNNEL 199 1 1000 MAXRESERVATION 0.5", "other FIXEDWINDOW 500 864000")
	b.hold("2 l k 90 other o 90 TTL 10m ID mine")
	b.left("l:k=50", "other:o=410")
	b.expect("CL.MRESERVE 2 l k 80 other o 90 TTL 10m ID mine", taken)
	b.hold("2 l k 90 other o 90 TTL 10m ID mine")
	b.expect("CL.MCOMMIT mine 2 l k 70 other o 70", settled)
	b.left("l:k=30", "other:o=430")
	b.denied("1 l k 31 TTL 10m")
	b.hold("1 l worst 1000000 TTL 10m ID mine")
	b.left("l:worst=50")
	b.expect("CL.MCOMMIT mine 1 l worst 10", settled)
	b.left("l:worst=90")
	b.expect("CL.MRESERVE 1 other o 501 TTL 10m", "*3\r\n:1\r\n"+resptest.Ints(1, 500, 430, -1, 864000)+"$-1\r\n")
}
