package catalog

import (
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	table := New()
	for name, want := range map[string]string{
		"cl.check":               "CL.CHECK <name> <key> [<quantity>] [DEBIT|ATMOST]",
		"cl.limit|explain":       "CL.LIMIT EXPLAIN <name> <key>",
		"cl.concurrency|acquire": "CL.CONCURRENCY ACQUIRE <key> <max> <lease_ms> [<token>]",
		"cl.concurrency":         "CL.CONCURRENCY ACQUIRE|HELP|LEN|RELEASE|RENEW ...",
		"cl.slidingwindow":       "CL.SLIDINGWINDOW <key> <max_count> <period> [<quantity>] [APPROX] [COUNTDENIED|DEBIT] [ATMOST]",
		"cl.mcheck":              "CL.MCHECK <n> <name> <key> ... [QUANTITY <quantity>] [EACH] [DEBIT|ATMOST]",
		"cl.commit":              "CL.COMMIT <key> <id> <actual> [LATE <max_burst> <count_per_period> <period>]",
		"cl.mreserve":            "CL.MRESERVE <n> <name> <key> <units> ... TTL <time> [CHARGE] [ID <id>]",
		"cl.mcommit":             "CL.MCOMMIT <id> <n> <name> <key> <units> ...",
		"cl.mextend":             "CL.MEXTEND <id> <time> <n> <name> <key> ...",
		"cl.limit|overrides":     "CL.LIMIT OVERRIDES <name> [<cursor>] [FILE]",
		"cl.reset":               "CL.RESET <key> ...",
		"client|list":            "CLIENT LIST [TYPE <type> | ID <client-id> ...]",
	} {
		if got := table.LookupFull([]byte(name)).Usage(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	table.Each(func(c *Command) {
		if c.IsLimiters() && (strings.ContainsAny(c.Usage(), "\r\n") || len(c.Usage()) > 450) {
			t.Errorf("%s: the usage is not a line: %q", c.FullName(), c.Usage())
		}
	})
}

func TestMeant(t *testing.T) {
	t.Parallel()
	table := New()
	for name, want := range map[string]string{
		"cl.throttel": "cl.throttle", "CL.TROTTLE": "cl.throttle", "throttle": "cl.throttle", "Check": "cl.check", "cl.chekc": "cl.check", "rl.throtle": "rl.throttle",
		"cl.limits": "cl.limit", "clthrottle": "cl.throttle", "cl_check": "cl.check", "hset": "", "reset2": "", "cl.": "", "cl.nosuch": "", "": "",
		strings.Repeat("cl.throttle", 1000): "",
	} {
		if got := table.Meant([]byte(name)); got != want {
			t.Errorf("%.30q: %q, want %q", name, got, want)
		}
	}
	less := table.Without("it is off", "cl.throttle", "cl.check")
	if got, all := less.Meant([]byte("cl.throttel")), less.Meant([]byte("check")); got == "cl.throttle" || all != "" {
		t.Errorf("%q and %q: a command that is refused was meant", got, all)
	}
	for call, want := range map[string]string{
		"cl.limit explian": "explain", "cl.limit overide": "override", "cl.limit LIST2": "list", "cl.concurrency aquire": "acquire", "cl.limit nosuch": "", "cl.bucket tak": "take", "config gett": "",
	} {
		name, sub, _ := strings.Cut(call, " ")
		if got := table.Lookup([]byte(name)).MeantSub([]byte(sub)); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}
