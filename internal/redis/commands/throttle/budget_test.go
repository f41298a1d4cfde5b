package throttle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// budgets is a client of holds.
type budgets struct {
	*testing.T
	r *commandstest.Harness
	s *commandstest.Client
}

// newBudgets returns a client of a server with limits, each as CL.LIMIT SET takes it.
func newBudgets(t *testing.T, limits ...string) *budgets {
	t.Helper()
	r := commandstest.New()
	b := &budgets{t, r, r.Session()}
	for _, limit := range limits {
		b.expect("CL.LIMIT SET "+limit, "+OK\r\n")
	}
	return b
}

func (b *budgets) say(line string) resptest.Reply {
	b.Helper()
	return resptest.ParseAll(b.T, commandstest.Say(b.T, b.s, line+"\r\n"))[0]
}

func (b *budgets) expect(line, want string) {
	b.Helper()
	commandstest.Expect(b.T, b.s, line+"\r\n", want)
}

// left checks the units that are left of keys, name:key=units.
func (b *budgets) left(all ...string) {
	b.Helper()
	for _, one := range all {
		key, units, _ := strings.Cut(one, "=")
		name, key, _ := strings.Cut(key, ":")
		reply := b.say("CL.CHECK " + name + " " + key + " 0")
		if reply.Kind != '*' {
			b.Fatalf("%s: %+v", one, reply)
		}
		if got := fmt.Sprint(reply.Elements[2].Number); got != units {
			b.Errorf("%s: %s are left", one, got)
		}
	}
}

// hold checks that a call holds, and returns the id.
func (b *budgets) hold(call string) (id string) {
	b.Helper()
	reply := b.say("CL.MRESERVE " + call)
	if reply.Kind != '*' || reply.Elements[0].Number != 0 {
		b.Fatalf("%s: %+v", call, reply)
	}
	return reply.Elements[len(reply.Elements)-1].Text
}

// denied checks that a call is limited, and holds nothing.
func (b *budgets) denied(call string) {
	b.Helper()
	reply := b.say("CL.MRESERVE " + call)
	last := len(reply.Elements) - 1
	if reply.Kind != '*' || reply.Elements[0].Number != 1 || reply.Elements[last].Kind != '_' {
		b.Errorf("%s: %+v", call, reply)
	}
}

func (b *budgets) wait(d time.Duration) { b.r.Clock.Advance(int64(d)) }

const (
	none    = ":0\r\n"
	settled = ":1\r\n"
	late    = ":2\r\n"

	otherPairs = "-ERR the pairs are not those that the hold was made for; give all of them, and no others\r\n"
	taken      = "-ERR the id is another hold's, of other arguments; give another ID, or none\r\n"
	overdue    = "-ERR the id is a hold's whose time is over; commit it, or give another ID\r\n"
)

// eachAlgorithm tests a limit of 100 units with every algorithm that can hold, and with all together.
func eachAlgorithm(t *testing.T, test func(b *budgets)) {
	all := map[string]string{
		"funnel": "FUNNEL 99 1 10000", "token bucket": "TOKENBUCKET 100 1 10000", "fixed window": "FIXEDWINDOW 100 864000",
		"approximate window": "SLIDINGWINDOW 100 864000 APPROX", "quota": "QUOTA 100 MONTH",
		"several": "FUNNEL 99 1 10000 FIXEDWINDOW 100 864000 SLIDINGWINDOW 100 1728000 APPROX QUOTA 100 MONTH QUOTA 1000 YEAR",
	}
	for name, rules := range all {
		t.Run(name, func(t *testing.T) { test(newBudgets(t, "l "+rules, "other FIXEDWINDOW 500 864000")) })
	}
}

// TestHoldsAreSettled: a hold charges each pair, less comes back, more is debited, and no id is settled
// twice.
func TestHoldsAreSettled(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		for _, used := range []int{0, 10, 30, 45} {
			k, o := fmt.Sprint("k", used), fmt.Sprint("o", used)
			id := b.hold(fmt.Sprintf("2 l %s 30 other %s 40 TTL 30s", k, o))
			b.left("l:"+k+"=70", "other:"+o+"=460")
			b.wait(29 * time.Second)
			b.left("l:"+k+"=70", "other:"+o+"=460")
			commit := fmt.Sprintf("CL.MCOMMIT %s 2 other %s %d l %s %d", id, o, used, k, used) // in any order
			b.expect(commit, settled)
			want := []string{fmt.Sprintf("l:%s=%d", k, 100-used), fmt.Sprintf("other:%s=%d", o, 500-used)}
			b.left(want...)
			b.expect(commit, none)
			b.wait(time.Minute)
			b.expect(commit, none)
			b.expect(fmt.Sprintf("CL.MEXTEND %s 30s 2 l %s other %s", id, k, o), none)
			b.left(want...)
		}
	})
}

// TestExcessesAreDebited, also beyond the limit, and count as debits.
func TestExcessesAreDebited(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		id := b.hold("1 l k 30 TTL 30s")
		b.expect("CL.MCOMMIT "+id+" 1 l k 130", settled)
		b.left("l:k=0")
		if got := b.say("CL.CHECK l k 1"); got.Elements[0].Number != 1 {
			b.Errorf("one more: %+v", got)
		}
		got := fields(b.say("CL.LIMIT GET l"))
		for name, want := range map[string]int64{"allowed": 1, "limited": 2, "charged_beyond": 1, "holds": 1, "holds_settled": 1, "holds_settled_late": 0} {
			if got[name] != want {
				b.Errorf("%s is %d, want %d", name, got[name], want)
			}
		}
	})
}

// fields returns the numbers of a map.
func fields(reply resptest.Reply) map[string]int64 {
	all := map[string]int64{}
	for i := 0; i+1 < len(reply.Elements); i += 2 {
		all[reply.Elements[i].Text] = reply.Elements[i+1].Number
	}
	return all
}

// TestOverdueHolds return their units, and are debited what was used when they are committed at last.
func TestOverdueHolds(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		id := b.hold("2 l k 30 other o 40 TTL 10000")
		b.wait(10*time.Second - 1)
		b.left("l:k=70", "other:o=460")
		b.wait(1)
		b.left("l:k=100", "other:o=500")
		b.expect("CL.MEXTEND "+id+" 30s 2 l k other o", none)
		b.expect("CL.MCOMMIT "+id+" 2 l k 25 other o 45", late)
		b.left("l:k=75", "other:o=455")
		b.expect("CL.MCOMMIT "+id+" 2 l k 25 other o 45", none)
		if got := fields(b.say("CL.LIMIT GET other")); got["holds_settled"] != 0 || got["holds_settled_late"] != 1 {
			b.Errorf("%v", got)
		}
	})
}

// TestChargedHolds stay charged when their time is over; only the difference is returned or debited.
func TestChargedHolds(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		for i, used := range []int{0, 25, 30, 45} {
			key := fmt.Sprint("k", i)
			id := b.hold("1 l " + key + " 30 CHARGE TTL 10s")
			b.wait(20 * time.Second)
			b.left("l:" + key + "=70")
			b.expect(fmt.Sprintf("CL.MCOMMIT %s 1 l %s %d", id, key, used), late)
			b.left(fmt.Sprintf("l:%s=%d", key, 100-used))
		}
	})
}

// TestOverdueForADay: then they are forgotten.
func TestOverdueForADay(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 864000")
	first, second := b.hold("1 l k 30 TTL 10s"), b.hold("1 l k 20 CHARGE TTL 11s")
	b.wait(10*time.Second + 24*time.Hour - 1)
	b.expect("CL.MCOMMIT "+first+" 1 l k 30", late)
	b.left("l:k=50")
	b.wait(time.Second + 1)
	b.expect("CL.MCOMMIT "+second+" 1 l k 0", none)
	b.left("l:k=50")
}

// TestOverdueHoldsOfAKey: the latest 1,024 are remembered.
func TestOverdueHoldsOfAKey(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 1000000 864000")
	for i := range 1026 {
		b.hold(fmt.Sprintf("1 l k 1 CHARGE TTL %d ID id%d", 1000+i, i))
	}
	b.wait(time.Minute)
	b.left("l:k=998974")
	for i, want := range map[int]string{0: none, 1: none, 2: late, 1025: late} {
		b.expect(fmt.Sprintf("CL.MCOMMIT id%d 1 l k 1", i), want)
	}
	b.left("l:k=998974")
}

// TestExtend: the end is that time from now.
func TestExtend(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		id := b.hold("2 l k 30 other o 40 TTL 10s")
		b.wait(5 * time.Second)
		b.expect("CL.MEXTEND "+id+" 10s 2 other o l k", settled)
		b.wait(10*time.Second - 1)
		b.left("l:k=70", "other:o=460")
		b.expect("CL.MEXTEND "+id+" 1 2 l k other o", settled)
		b.wait(time.Millisecond)
		b.left("l:k=100", "other:o=500")
		b.expect("CL.MEXTEND "+id+" 10s 2 l k other o", none)
		b.expect("CL.MEXTEND nosuch 10s 2 l k other o", none)
		b.expect("CL.MCOMMIT "+id+" 2 l k 1 other o 1", late)
	})
}

// TestHoldsOfAllOrNone: the reply is that of CL.MCHECK and null, and nothing is charged.
func TestHoldsOfAllOrNone(t *testing.T) {
	b := newBudgets(t, "l FUNNEL 99 1 10000", "other FIXEDWINDOW 50 86400")
	b.denied("2 l k 30 other o 51 TTL 30s")
	b.left("l:k=100", "other:o=50")
	b.hold("2 l k 30 other o 40 TTL 30s")
	b.denied("2 l k 30 other o 11 TTL 30s ID mine")
	b.left("l:k=70", "other:o=10")
	b.expect("CL.MCOMMIT mine 2 l k 30 other o 11", none)
	b.expect("CL.MRESERVE 2 l k 30 other o 11 TTL 30s", "*4\r\n:1\r\n"+resptest.Ints(0, 100, 70, -1, 300000)+resptest.Ints(1, 50, 10, 86400, 86400)+"$-1\r\n")
	b.expect("HELLO 3", commandstest.Say(t, b.s, "HELLO 3\r\n"))
	b.expect("CL.MRESERVE 1 other o 11 TTL 30s", "*3\r\n:1\r\n"+resptest.Ints(1, 50, 10, 86400, 86400)+"_\r\n")
	b.expect("CL.MRESERVE 1 other o 10 TTL 30s ID x", "*3\r\n:0\r\n"+resptest.Ints(0, 50, 0, -1, 86400)+"$1\r\nx\r\n")
	if got := b.say("CL.MRESERVE 1 l new 100 TTL 1"); len(got.Elements) != 3 || len(got.Elements[2].Text) != 32 || strings.Trim(got.Elements[2].Text, "0123456789abcdef") != "" {
		t.Errorf("%+v", got)
	}
}

// TestAGivenID is the same hold while it is open, and forgotten after its settle.
func TestAGivenID(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		const call = "2 l k 30 other o 40 TTL 10s ID mine"
		first := b.say("CL.MRESERVE " + call)
		for _, again := range []string{call, "2 other o 40 l k 30 ID mine TTL 10000"} {
			b.wait(time.Second)
			got := b.say("CL.MRESERVE " + again)
			if fmt.Sprint(got.Elements[0], got.Elements[3]) != fmt.Sprint(first.Elements[0], first.Elements[3]) {
				b.Errorf("%s: %+v, and then %+v", again, first, got)
			}
			b.left("l:k=70", "other:o=460")
		}
		for _, other := range []string{
			"2 l k 31 other o 40 TTL 10s ID mine", "2 l k 30 other o 40 TTL 11s ID mine", "2 l k 30 other o 40 TTL 10s CHARGE ID mine",
			"1 l k 30 TTL 10s ID mine", "2 l k 30 other o2 40 TTL 10s ID mine",
		} {
			b.expect("CL.MRESERVE "+other, taken)
		}
		b.left("l:k=70", "other:o=460", "other:o2=500")
		b.wait(8 * time.Second) // the end is unchanged
		b.left("l:k=100", "other:o=500")
		b.expect("CL.MRESERVE "+call, overdue)
		b.expect("CL.MRESERVE 1 l k 30 TTL 10s ID mine", taken)
		b.expect("CL.MCOMMIT mine 2 l k 1 other o 1", late)
		b.hold(call)
		b.left("l:k=69", "other:o=459")
		b.expect("CL.MCOMMIT mine 2 l k 30 other o 40", settled)
		b.hold("1 l k 5 TTL 1h CHARGE ID mine")
	})
}

// TestAGivenIDWhereNothingIsLeft: the same hold again is not limited.
func TestAGivenIDWhereNothingIsLeft(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 100 86400", "other FIXEDWINDOW 100 86400")
	const call = "2 l k 100 other o 100 TTL 30s ID mine"
	b.hold(call)
	b.hold(call)
	b.expect("DEL other:o", settled)
	b.wait(10 * time.Second)
	b.hold(call) // a look, and the pair that lost its hold holds again until the same end
	b.left("l:k=0", "other:o=0")
	b.wait(20 * time.Second)
	b.left("l:k=100", "other:o=100")
	b.expect("CL.MCOMMIT mine 2 l k 20 other o 20", late)
	b.hold("2 l k 80 other o 80 TTL 30s ID mine")
	b.expect("DEL other:o", settled)
	b.expect("CL.MCOMMIT mine 2 l k 20 other o 20", settled)
	b.left("l:k=60", "other:o=80")
}

// TestMostHolds: a key has at most 4,096 open ones.
func TestMostHolds(t *testing.T) {
	b := newBudgets(t, "l FIXEDWINDOW 1000000 864000", "other FIXEDWINDOW 1000000 864000")
	for i := range 4096 {
		b.hold(fmt.Sprintf("1 l k 1 TTL 1h ID id%d", i))
	}
	const full = "-TOOMANYHOLDS the key 'l:k' has as many open holds as it may; commit some, or spread them over several keys\r\n"
	b.expect("CL.MRESERVE 2 other o 1 l k 1 TTL 1h", full)
	b.expect("CL.MRESERVE 1 l k 1 TTL 1h", full)
	b.left("l:k=995904", "other:o=1000000")
	b.hold("1 l k 1 TTL 1h ID id7")
	b.expect("CL.MCOMMIT id7 1 l k 0", settled)
	b.hold("1 l k 1 TTL 1h")
	b.expect("CL.MRESERVE 1 l k 1 TTL 1h", full)
}

// TestLooksSeeHoldsExpire: of CL.CHECK, CL.MCHECK and CL.LIMIT EXPLAIN, and of requests.
func TestLooksSeeHoldsExpire(t *testing.T) {
	eachAlgorithm(t, func(b *budgets) {
		b.hold("1 l k 100 TTL 10s")
		b.wait(10 * time.Second)
		if got := b.say("CL.MCHECK 1 l k QUANTITY 0"); got.Elements[1].Elements[2].Number != 100 {
			b.Errorf("%+v", got)
		}
		if got := b.say("CL.CHECK l k 100"); got.Elements[0].Number != 0 {
			b.Errorf("%+v", got)
		}
		b.left("l:k=0")
	})
}
