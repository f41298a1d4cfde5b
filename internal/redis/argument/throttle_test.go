package argument

import (
	"math"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// read reads a call in database 7.
func read(t *testing.T, command, args string, reading funnel.Reading) (q store.Request, err error) {
	t.Helper()
	request := Requests(registry(t))[command]
	if command == "cl.peek" {
		request = func(q *store.Request, db uint16, args [][]byte, reading funnel.Reading, _ *Names) error {
			return Peek(q, db, args, reading)
		}
	}
	names := Names{Joined: []byte("before")}
	err = request(&q, 7, words(strings.ReplaceAll(command, "|", " ")+" "+args), reading, &names)
	return q, err
}

func words(text string) (args [][]byte) {
	for word := range strings.FieldsSeq(text) {
		args = append(args, []byte(word))
	}
	return args
}

// ruleOf is that of a funnel with a capacity, from which 2 units leak in 10 of the time's unit.
func ruleOf(t *testing.T, unit funnel.Unit, capacity int64) limiter.Rule {
	t.Helper()
	l, err := funnel.NewLimitIn(unit, funnel.Capacity, capacity, 2, 10)
	if err != nil {
		t.Fatal(err)
	}
	return limiter.Rule{Unit: unit, Funnel: l}
}

// windowOf is the rule of a window of a minute.
func windowOf(t *testing.T, kind limiter.Kind, flags limiter.Flags, maxCount int64) limiter.Rule {
	t.Helper()
	l, err := window.NewLimit(funnel.Seconds, maxCount, 60)
	if err != nil {
		t.Fatal(err)
	}
	return limiter.Rule{Kind: kind, Flags: flags, Unit: funnel.WholeSeconds, Packed: l.Packed()}
}

func TestRequests(t *testing.T) {
	ms := funnel.Milliseconds
	const counted, most = limiter.CountDenied, limiter.AtMost
	atMost := func(r limiter.Rule) limiter.Rule {
		r.Flags = most
		return r
	}
	for _, tt := range []struct {
		command, args string
		rule          limiter.Rule
		quantity      int64
	}{
		{"cl.throttle", "k 4 2 10", ruleOf(t, 0, 5), 1},
		{"cl.throttle", "k 4 2 10 -3", ruleOf(t, 0, 5), -3},
		{"rl.throttle", "k 4 2 10 +3", ruleOf(t, 0, 5), 3},
		{"cl.pthrottle", "k 4 2 10", ruleOf(t, ms, 5), 1},
		{"cl.pthrottle", "k 4 2 10 0", ruleOf(t, ms, 5), 0},
		{"cl.tokenbucket", "k 4 2 10 7", ruleOf(t, 0, 4), 7},
		{"cl.refund", "k 4 2 10", ruleOf(t, 0, 5), -1},
		{"cl.refund", "k 4 2 10 9223372036854775807", ruleOf(t, 0, 5), -math.MaxInt64},
		{"cl.peek", "k 4 2 10", ruleOf(t, 0, 5), 0},
		{"cl.peek", "k 4 2 10 2", ruleOf(t, 0, 5), 2},
		{"cl.fixedwindow", "k 10 60", windowOf(t, limiter.FixedWindow, 0, 10), 1},
		{"cl.fixedwindow", "k 10 60 3", windowOf(t, limiter.FixedWindow, 0, 10), 3},
		{"cl.fixedwindow", "k 10 60 CountDenied", windowOf(t, limiter.FixedWindow, counted, 10), 1},
		{"cl.fixedwindow", "k 10 60 0 COUNTDENIED", windowOf(t, limiter.FixedWindow, counted, 10), 0},
		{"cl.slidingwindow", "k 10 60", windowOf(t, limiter.SlidingWindow, 0, 10), 1},
		{"cl.slidingwindow", "k 10 60 -2 countdenied", windowOf(t, limiter.SlidingWindow, counted, 10), -2},
		{"cl.slidingwindow", "k 10 60 APPROX", windowOf(t, limiter.ApproxWindow, 0, 10), 1},
		{"cl.slidingwindow", "k 10000 60 approx", windowOf(t, limiter.ApproxWindow, 0, 10_000), 1},
		{"cl.slidingwindow", "k 10 60 5 approx COUNTDENIED", windowOf(t, limiter.ApproxWindow, counted, 10), 5},
		{"cl.slidingwindow", "k 10 60 COUNTDENIED approx", windowOf(t, limiter.ApproxWindow, counted, 10), 1},
		{"cl.throttle", "k 4 2 10 3 ATMOST", atMost(ruleOf(t, 0, 5)), 3},
		{"cl.throttle", "k 4 2 10 AtMost", atMost(ruleOf(t, 0, 5)), 1},
		{"rl.throttle", "k 4 2 10 7 atmost", atMost(ruleOf(t, 0, 5)), 7},
		{"cl.pthrottle", "k 4 2 10 ATMOST", atMost(ruleOf(t, ms, 5)), 1},
		{"cl.tokenbucket", "k 4 2 10 7 ATMOST", atMost(ruleOf(t, 0, 4)), 7},
		{"cl.peek", "k 4 2 10 ATMOST", atMost(ruleOf(t, 0, 5)), 1},
		{"cl.fixedwindow", "k 10 60 ATMOST", windowOf(t, limiter.FixedWindow, most, 10), 1},
		{"cl.fixedwindow", "k 10 60 3 COUNTDENIED ATMOST", windowOf(t, limiter.FixedWindow, most, 10), 3},
		{"cl.slidingwindow", "k 10 60 3 ATMOST approx COUNTDENIED", windowOf(t, limiter.ApproxWindow, most, 10), 3},
	} {
		q, err := read(t, tt.command, tt.args, funnel.Burst)
		if err != nil || q.Rule != tt.rule || q.Quantity != tt.quantity || q.Key.DB != 7 || string(q.Key.Name) != "k" {
			t.Errorf("%s %s: %+v, %v", tt.command, tt.args, q, err)
		}
	}
}

// TestReading of max_burst, and of nothing else.
func TestReading(t *testing.T) {
	for command, capacity := range map[string]int64{
		"cl.throttle": 4, "rl.throttle": 4, "cl.pthrottle": 4, "cl.refund": 4, "cl.peek": 4, "cl.tokenbucket": 4,
	} {
		if q, err := read(t, command, "k 4 2 10", funnel.Capacity); err != nil || q.Rule.Funnel.Capacity() != capacity {
			t.Errorf("%s: %+v, %v", command, q, err)
		}
	}
}

// TestRequestErrors name the argument as the command does. Those of CL.THROTTLE itself are redis-cell's.
func TestRequestErrors(t *testing.T) {
	const (
		number     = "wrong number of arguments" // what the command's row adds is in reply's tests
		syntax     = "syntax error"
		notInteger = "Couldn't parse as integer: "
		zero       = "Zero rates are not supported"
		slow       = "the funnel would take more than 2^62 ns (146 years) to drain; use a smaller "
	)
	for _, tt := range []struct{ command, args, want string }{
		{"rl.throttle", "", number},
		{"cl.refund", "k 1 1 1 1 1", number},
		{"cl.peek", "k", number},
		{"cl.pthrottle", "k", number},
		{"cl.tokenbucket", "k", number},
		{"cl.pthrottle", "k 1 1 -1", "period_ms must be at least 0, got -1"},
		{"cl.pthrottle", "k 1 0 1", zero},
		{"cl.pthrottle", "k 0 1 9223372036854775807", slow + "max_burst or period_ms, or a larger count"},
		{"cl.pthrottle", "k 1 1 period", notInteger + "period"},
		{"cl.tokenbucket", "k 0 1 1", "capacity must be at least 1, got 0"},
		{"cl.tokenbucket", "k 1 -1 1", "refill_count must be at least 0, got -1"},
		{"cl.tokenbucket", "k 1 1 -1", "period must be at least 0, got -1"},
		{"cl.tokenbucket", "k 1 1 9223372036854775807", slow + "capacity or period, or a larger refill_count"},
		{"cl.tokenbucket", "k count 1 1", notInteger + "count"},
		{"cl.refund", "k 1 1 1 0", "quantity must be at least 1, got 0"},
		{"cl.refund", "k 1 1 1 -9223372036854775808", "quantity must be at least 1, got -9223372036854775808"},
		{"cl.refund", "k 1 0 1 0", zero},
		{"cl.fixedwindow", "k 1", number},
		{"cl.fixedwindow", "k 1 1 1 APPROX", syntax},
		{"cl.fixedwindow", "k 1 1 1 1", syntax},
		{"cl.fixedwindow", "k 1 1 COUNTDENIED 1", syntax},
		{"cl.fixedwindow", "k 1 1 APPROX", notInteger + "APPROX"},
		{"cl.slidingwindow", "k 1", number},
		{"cl.slidingwindow", "k 1 1 APPROX 1", syntax},
		{"cl.slidingwindow", "k 1 1 APPROX APPROX", syntax},
		{"cl.slidingwindow", "k 1 1 APPROX DEBIT debit", syntax},
		{"cl.fixedwindow", "k 1 1 COUNTDENIED CountDenied", syntax},
		{"cl.quota", "k 1 DAY TZ UTC TZ UTC", syntax},
		{"cl.quota", "k 1 DAY START 01:00 START 01:00", syntax},
		{"cl.quota", "k 1 DAY EPOCH EPOCH", syntax},
		{"cl.quota", "k 1 DAY DEBIT DEBIT", syntax},
		{"cl.quota", "k 1 DAY COUNTDENIED COUNTDENIED", syntax},
		{"cl.quota", "k 1", number},
		{"cl.quota", "k 1 EON", syntax},
		{"cl.slidingwindow", "k 1 1 1 APPROX COUNTDENIED APPROX APPROX", syntax},
		{"cl.slidingwindow", "k 1 1 1 APPROX COUNTDENIED APPROX APPROX APPROX", number},
		{"cl.slidingwindow", "k 1 x APPROX", notInteger + "x"},
		{"cl.bucket|take", "k", number},
		{"cl.bucket|take", "", number},
		{"cl.bucket|take", "k 1 1 1", syntax},
		{"cl.bucket|take", "k 1 1 ATMOST 1", number},
		{"cl.bucket|take", "k 1 1 ATMOST ATMOST", number},
		{"rl.throttle", "k 1 1 1 0 ATMOST", "quantity must be at least 1, got 0"},
		{"cl.pthrottle", "k 1 1 1 -1 ATMOST", "quantity must be at least 1, got -1"},
		{"cl.tokenbucket", "k 1 1 1 1 1", number},
		{"cl.tokenbucket", "k 1 1 1 ATMOST ATMOST", notInteger + "ATMOST"},
		{"cl.tokenbucket", "k 1 1 1 ATMOST 1", number},
		{"cl.tokenbucket", "k 1 1 x 1 ATMOST", notInteger + "x"},
		{"cl.tokenbucket", "k 1 1 1 1 ATMOST ATMOST", number},
		{"rl.throttle", "k 1 1 ATMOST", notInteger + "ATMOST"},
		{"cl.refund", "k 1 1 1 ATMOST", notInteger + "ATMOST"},
		{"cl.refund", "k 1 1 1 1 ATMOST", number},
		{"cl.debit", "k 1 1 1 ATMOST", notInteger + "ATMOST"},
		{"cl.debit", "k 1 1 1 1 ATMOST", number},
		{"cl.peek", "k 1 1 1 0 ATMOST", "quantity must be at least 1, got 0"},
		{"cl.fixedwindow", "k 1 1 0 ATMOST", "quantity must be at least 1, got 0"},
		{"cl.fixedwindow", "k 1 1 ATMOST ATMOST", syntax},
		{"cl.fixedwindow", "k 1 1 ATMOST DEBIT", "DEBIT and ATMOST exclude each other: a debit charges all units"},
		{"cl.slidingwindow", "k 1 1 APPROX DEBIT ATMOST", "DEBIT and ATMOST exclude each other: a debit charges all units"},
		{"cl.quota", "k 1 DAY -3 ATMOST", "quantity must be at least 1, got -3"},
		{"cl.quota", "k 1 DAY ATMOST ATMOST", syntax},
		{"cl.bucket|take", "k 1 x", notInteger + "x"},
	} {
		_, err := read(t, tt.command, tt.args, funnel.Burst)
		if want := "ERR " + tt.want; err == nil || reply.Text(err) != want {
			t.Errorf("%s %s: %v, want %s", tt.command, tt.args, err, want)
		}
	}
}

// TestRequestsAllocateNothing of calls that are right.
func TestRequestsAllocateNothing(t *testing.T) {
	for command, args := range map[string]string{
		"cl.throttle": "k 4 2 10 1", "rl.throttle": "k 4 2 10 3 ATMOST", "cl.pthrottle": "k 4 2 10", "cl.tokenbucket": "k 4 2 10 1", "cl.refund": "k 4 2 10 1",
		"cl.fixedwindow": "k 10 60 1 COUNTDENIED", "cl.slidingwindow": "k 10 60 1 APPROX COUNTDENIED", "cl.bucket|take": "k 4 1", "cl.check": "login bob 1 ATMOST",
	} {
		request, call := Requests(registry(t))[command], words(strings.ReplaceAll(command, "|", " ")+" "+args)
		var q store.Request
		var names Names
		if n := testing.AllocsPerRun(100, func() {
			names.Joined = names.Joined[:0]
			if err := request(&q, 0, call, funnel.Burst, &names); err != nil {
				t.Error(err)
			}
		}); n > 0 {
			t.Errorf("%s: %g allocations", command, n)
		}
	}
}
