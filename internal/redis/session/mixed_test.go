package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// batchedCalls returns calls of every batched command; some are limited, and some fail.
func batchedCalls() []string {
	return []string{
		"CL.THROTTLE t 3 1 60", "CL.THROTTLE t 3 1 60 0", "CL.THROTTLE t 3 1 60 -1", "RL.THROTTLE t 3 1 60", "CL.TOKENBUCKET t 4 1 60 2",
		"CL.PTHROTTLE p 3 1 1500", "CL.REFUND t 3 1 60", "CL.FIXEDWINDOW f 5 60", "CL.FIXEDWINDOW f 5 60 2 COUNTDENIED",
		"CL.SLIDINGWINDOW s 5 60 2", "CL.SLIDINGWINDOW s 5 60 -1", "CL.SLIDINGWINDOW a 5 60 APPROX", "CL.BUCKET TAKE b 9", "CL.BUCKET TAKE b 9 -1",
		"CL.CHECK l n", "CL.CHECK l n 2", "CL.CHECK l n -1", "CL.CHECK shadow n", "CL.CHECK shadow n 0",
		"CL.THROTTLE f 3 1 60", "CL.THROTTLE l:n 3 1 60", "CL.CHECK l f", "CL.FIXEDWINDOW t 5 60", "CL.SLIDINGWINDOW a 5 60", "CL.BUCKET TAKE p 9", // of other kinds
		"CL.THROTTLE t 3 x 60", "CL.REFUND t 3 1 60 0", "CL.FIXEDWINDOW", "CL.BUCKET TAKE b", "CL.BUCKET TAKE",
		"CL.CHECK nosuch n", "CL.CHECK l n x", "CL.CHECK l n 1 1", "CL.CHECK l",
	}
}

// someCalls returns n random ones, with other calls between.
func someCalls(seed uint64, n int) []string {
	random, all := rand.New(rand.NewPCG(seed, 0)), append(batchedCalls(), "PING", "CL.BUCKET NOSUCH b") //nolint:gosec // it is to be the same each time
	calls := make([]string, n)
	for i := range calls {
		calls[i] = all[random.IntN(len(all))]
	}
	return calls
}

// mixedRig has a bucket, named limits, and a key of another kind.
func mixedRig(t *testing.T) *commandstest.Client {
	t.Helper()
	s := commandstest.New().Session()
	commandstest.Say(t, s, "CL.BUCKET RESET b 9\r\nCL.LIMIT SET l 4 1 60 9 1 1\r\nCL.LIMIT SET shadow 2 1 60 SHADOW\r\nCL.BUCKET RESET l:f 9\r\n")
	return s
}

// oneByOne returns the replies to calls without pipelining.
func oneByOne(t *testing.T, calls []string) (replies []string) {
	t.Helper()
	s := mixedRig(t)
	for _, call := range calls {
		replies = append(replies, commandstest.Say(t, s, call+"\r\n"))
	}
	return replies
}

// TestMixedPipelines: calls of several commands are answered in order, each as if alone, also in transactions
// and scripts.
func TestMixedPipelines(t *testing.T) {
	for seed := range uint64(20) {
		calls := someCalls(seed, 200)
		one := oneByOne(t, calls)
		if got, want := commandstest.Say(t, mixedRig(t), strings.Join(calls, "\r\n")+"\r\n"), strings.Join(one, ""); got != want {
			t.Errorf("seed %d: got %q, want %q", seed, got, want)
		}
		calls = executable(calls, one)
		one = oneByOne(t, calls)
		got := commandstest.Say(t, mixedRig(t), "MULTI\r\n"+strings.Join(calls, "\r\n")+"\r\nEXEC\r\n")
		if want := "+OK\r\n" + strings.Repeat("+QUEUED\r\n", len(calls)) + fmt.Sprintf("*%d\r\n", len(calls)) + strings.Join(one, ""); got != want {
			t.Errorf("seed %d, in a transaction: got %q, want %q", seed, got, want)
		}
		native, interpreted := mixedRig(t), mixedRig(t)
		for i, call := range calls {
			words := strings.Fields(call)
			quoted := "'" + strings.Join(words, "','") + "'"
			if got := commandstest.Say(t, native, resptest.Encode("EVAL", "return redis.pcall("+quoted+")", "9", "t", "p", "f", "s", "a", "b", "l:n", "l:f", "shadow:n")); got != one[i] {
				t.Errorf("seed %d: the script %s: got %q, want %q", seed, quoted, got, one[i])
			}
			if got := commandstest.Say(t, interpreted, resptest.Encode(append([]string{"EVAL", "return redis.pcall(unpack(ARGV))", "9", "t", "p", "f", "s", "a", "b", "l:n", "l:f", "shadow:n"}, words...)...)); got != one[i] {
				t.Errorf("seed %d: the interpreted script of %s: got %q, want %q", seed, quoted, got, one[i])
			}
		}
	}
}

// executable returns the calls that a transaction queues: known ones with a valid number of arguments.
func executable(calls, replies []string) (taken []string) {
	for i, call := range calls {
		if !strings.HasPrefix(replies[i], "-ERR ") {
			taken = append(taken, call)
		}
	}
	return taken
}

// TestBatchesAreOfOneCommand: only a change of the command starts a new batch.
func TestBatchesAreOfOneCommand(t *testing.T) {
	for calls, batches := range map[string]int{
		"CL.THROTTLE t 3 1 60,CL.THROTTLE u 3 1 60":                                                    1,
		"CL.THROTTLE t 3 1 60,RL.THROTTLE t 3 1 60":                                                    2,
		"CL.FIXEDWINDOW f 3 60,CL.FIXEDWINDOW f 3 60 COUNTDENIED,CL.THROTTLE t 3 1 60":                 2,
		"CL.SLIDINGWINDOW s 3 60,CL.SLIDINGWINDOW a 3 60 APPROX,CL.BUCKET TAKE b 5,CL.REFUND t 3 1 60": 3,
		"CL.BUCKET TAKE b 5,CL.BUCKET take b 6,CL.THROTTLE t 3 1 60,CL.BUCKET TAKE b 5":                3,
	} {
		r := commandstest.New()
		s := r.Session()
		r.Clock.StepBy(1)
		commandstest.Say(t, s, strings.ReplaceAll(calls, ",", "\r\n")+"\r\n")
		if got := r.Clock.Readings(); got != 2*batches { // at its begin and end
			t.Errorf("%s: the clock was read %d times, want %d", calls, got, 2*batches)
		}
	}
}

// TestBatchedCommandsDoNotAllocate on existing keys.
func TestBatchedCommandsDoNotAllocate(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	calls := map[string][]string{
		"rl.throttle":      {"KEY 1000000 1000000 1", "KEY 0 1 60"},
		"cl.pthrottle":     {"KEY 1000000 1000000 1000", "KEY 0 1 60"},
		"cl.tokenbucket":   {"KEY 1000000 1000000 1", "KEY 1 1 60"},
		"cl.refund":        {"KEY 4 1 60"},
		"cl.fixedwindow":   {"KEY 1000000 60", "KEY 3 60", "KEY 3 60 1 COUNTDENIED"},
		"cl.slidingwindow": {"KEY 4 60", "KEY 4 60 countdenied", "KEY 1000000 60 APPROX", "KEY 3 60 approx"},
		"cl.bucket|take":   {"KEY 5", "KEY 5 0"},
		"cl.debit":         {"KEY 1 1 60 3"},
		"cl.quota":         {"KEY 1000000 DAY", "KEY 3 MONTH 1 TZ Europe/Berlin START 15", "KEY 3 YEAR DEBIT"},
		"cl.check":         {"wide KEY", "narrow KEY 3", "shadow KEY 3", "wide KEY 0", "wide KEY DEBIT", "mixed KEY", "denied KEY"},
	}
	table := catalog.New()
	table.Each(func(c *catalog.Command) {
		// which has its own test
		if name := c.FullName(); c.Batches && len(calls[name]) == 0 && name != "cl.throttle" {
			call := "KEY"
			for _, arg := range c.Args {
				if arg.Type == "integer" && !arg.Optional {
					call += " 1000000"
				}
			}
			calls[name] = []string{call}
		}
	})
	for _, name := range table.Batched() {
		for _, args := range calls[name] {
			s := commandstest.New().Session()
			commandstest.Say(t, s, "CL.LIMIT SET wide 1000000 1000000 60 1000000 1000000 3600\r\nCL.LIMIT SET narrow 1 1 60\r\nCL.LIMIT SET shadow 1 1 60 SHADOW\r\n"+
				"CL.LIMIT SET mixed FUNNEL 1000000 1000000 60 FIXEDWINDOW 1000000 60 QUOTA 1000000 DAY TZ Europe/Berlin\r\nCL.LIMIT SET denied 1 1 60\r\nCL.LIMIT OVERRIDE denied user7 DENY\r\n")
			var b strings.Builder
			for i := range 128 {
				key := fmt.Sprint("user", i)
				if name == "cl.bucket|take" {
					commandstest.Say(t, s, "CL.BUCKET RESET "+key+" 1000000\r\n")
				}
				call := strings.ReplaceAll(name, "|", " ") + " " + strings.Replace(args, "KEY", key, 1)
				b.WriteString(resptest.Encode(strings.Fields(call)...))
			}
			in, out := []byte(b.String()), make([]byte, 0, 64<<10)
			allocs := testing.AllocsPerRun(100, func() {
				n, replies, status := s.Feed(in, out)
				if n != len(in) || status != peer.NeedInput || replies[0] != '*' {
					t.Fatalf("%s %s: consumed %d of %d bytes, status %d, replied %.80q", name, args, n, len(in), status, replies)
				}
			})
			if allocs != 0 {
				t.Errorf("%s %s: %v allocations", name, args, allocs)
			}
		}
	}
}
