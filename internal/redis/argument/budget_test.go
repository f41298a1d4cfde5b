package argument

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
)

// budgetLimits are limits by CL.LIMIT SET: a, b, and exact.
func budgetLimits(t *testing.T) *namedlimit.Limits {
	t.Helper()
	named := namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)})
	for _, set := range []string{"a FUNNEL 4 5 60", "b QUOTA 9 DAY FIXEDWINDOW 9 60", "exact SLIDINGWINDOW 9 60"} {
		d, err := Definition(words("cl.limit set "+set), funnel.Burst)
		if err == nil {
			err = named.Set(d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	limits := named.Limits()
	return &limits
}

func TestHolding(t *testing.T) {
	limits := budgetLimits(t)
	h, id, err := Holding(limits, 7, words("cl.mreserve 2 a k 3 b k 5 ttl 30s id mine charge"))
	if err != nil || string(id) != "mine" || h.Hold.New || h.Hold.ID != limiter.HoldIDOf([]byte("mine")) || h.Hold.TTLNs != 30e9 || !h.Hold.Charge {
		t.Fatalf("%+v, %s, %v", h, id, err)
	}
	for i, want := range []string{"7 a:k 3", "7 b:k 5"} {
		p := &h.Pairs[i]
		if got := fmt.Sprintf("%d %s %d", p.Key.DB, p.Key.Name, p.Units); got != want || cap(p.Key.Name) != len(p.Key.Name) || p.Named == nil {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ids := map[string]bool{}
	for range 100 {
		h, id, err := Holding(limits, 0, words("cl.mreserve 1 a k 3 TTL 1"))
		if err != nil || !h.Hold.New || len(id) != 32 || h.Hold.ID != limiter.HoldIDOf(id) || h.Hold.Charge || h.Hold.TTLNs != 1e6 || ids[string(id)] {
			t.Fatalf("%+v, %s, %v", h, id, err)
		}
		ids[string(id)] = true
	}
}

// TestHoldCalls: calls of the same pairs are told from others, and of these those of the same arguments.
func TestHoldCalls(t *testing.T) {
	limits := budgetLimits(t)
	call := func(args string) limiter.HoldCall {
		h, _, err := Holding(limits, 0, words("cl.mreserve "+args))
		if err != nil {
			t.Fatal(args, err)
		}
		return h.Hold.Call
	}
	of := call("2 a k 3 b k 5 TTL 30s")
	for _, same := range []string{"2 b k 5 a k 3 TTL 30s", "2 a k 3 b k 5 TTL 30000", "2 a k 3 b k 5 ID x TTL 0.5m"} {
		if got := call(same); got != of {
			t.Errorf("%s: %+v, want %+v", same, got, of)
		}
	}
	for _, other := range []string{"2 a k 5 b k 3 TTL 30s", "2 a k 3 b k 5 TTL 31s", "2 a k 3 b k 5 TTL 30s CHARGE"} {
		if got := call(other); got.Pairs != of.Pairs || got.All == of.All {
			t.Errorf("%s: %+v, and %+v", other, got, of)
		}
	}
	for _, other := range []string{"1 a k 3 TTL 30s", "2 a k 3 b l 5 TTL 30s", "3 a k 3 b k 5 a l 1 TTL 30s"} {
		if got := call(other); got.Pairs == of.Pairs || got.All == of.All {
			t.Errorf("%s: %+v, and %+v", other, got, of)
		}
	}
	s, _, err := Settling(limits, 0, words("cl.mcommit mine 2 b k 0 a k 1"))
	if err != nil || s.Hash != of.Pairs || s.ID != limiter.HoldIDOf([]byte("mine")) || s.Pairs[1].Units != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	e, _, err := Extending(limits, 0, words("cl.mextend mine 24h 2 b k a k"))
	if err != nil || e.Hash != of.Pairs || e.ID != s.ID || e.TTLNs != 24*3600*1e9 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestHashesOfHolds are kept in states: they stay what they are.
func TestHashesOfHolds(t *testing.T) {
	h, _, err := Holding(budgetLimits(t), 0, words("cl.mreserve 2 a k 3 b k 5 TTL 30s"))
	if want := (limiter.HoldCall{Pairs: 0x25f8d4ba, All: 0x574d08ae}); err != nil || h.Hold.Call != want {
		t.Errorf("%#x, %v", h.Hold.Call, err)
	}
}

func TestHoldErrors(t *testing.T) {
	limits := budgetLimits(t)
	const (
		n     = "ERR n, the number of pairs, must be 1 to 32, got "
		twice = "ERR the pair of 'a' and 'k' is given twice; give it once, with all its units"
		unit  = "must be milliseconds, such as 30000, or a time with a unit, such as 30s, got x"
		arity = string(reply.ErrArity)
		ids   = "ERR id must have 1 to 32 bytes"
	)
	many := "33" + strings.Repeat(" a k 1", 33)
	for args, want := range map[string]string{
		"mreserve x a k 1 TTL 1s":                               string(reply.ErrNotInteger),
		"mreserve 0 a k 1 TTL 1s":                               n + "0",
		"mreserve -1 a k 1 TTL 1s":                              n + "-1",
		"mreserve " + many + " TTL 1s":                          n + "33",
		"mreserve 2 a k 1 TTL 1s":                               arity,
		"mreserve 2 a k 1 a k 2 TTL 1s":                         twice,
		"mreserve 1 a k x TTL 1s":                               "ERR Couldn't parse as integer: x",
		"mreserve 1 a k 0 TTL 1s":                               "ERR units must be at least 1, got 0",
		"mreserve 1 a k -1 TTL 1s":                              "ERR units must be at least 1, got -1",
		"mreserve 1 a k 1 CHARGE ID x":                          "ERR TTL is missing: the time, such as TTL 30s, after which a hold that is not committed ends",
		"mreserve 1 a k 1 TTL x":                                "ERR TTL " + unit,
		"mreserve 1 a k 1 TTL 0":                                "ERR TTL must be at least 1 ms, got 0",
		"mreserve 1 a k 1 TTL 1us":                              "ERR TTL must be at least 1 ms, got 1us",
		"mreserve 1 a k 1 TTL 86400001":                         "ERR TTL must be at most 24h, got 86400001",
		"mreserve 1 a k 1 TTL":                                  string(reply.ErrSyntax),
		"mreserve 1 a k 1 TTL 1s TTL 1s":                        string(reply.ErrSyntax),
		"mreserve 1 a k 1 TTL 1s CHARGE CHARGE":                 string(reply.ErrSyntax),
		"mreserve 1 a k 1 TTL 1s ID x ID x":                     string(reply.ErrSyntax),
		"mreserve 1 a k 1 TTL 1s EACH":                          string(reply.ErrSyntax),
		"mreserve 1 a k 1 TTL 1s b k 1":                         string(reply.ErrSyntax),
		"mreserve 1 a k 1 TTL 1s ID " + strings.Repeat("x", 33): ids,
		"mreserve 1 nosuch k 1 TTL 1s":                          "ERR no such limit 'nosuch'; define it by CL.LIMIT SET or in --limits-file",
		"mreserve 2 a k 1 exact k 1 TTL 1s":                     "ERR the limit 'exact' has an exact sliding window for this key, which can hold nothing; use approximate_window",
		"mcommit x 0 a k 1":                                     n + "0",
		"mcommit x 1 a k -1":                                    "ERR units must be at least 0, got -1",
		"mcommit x 1 a k 1 b":                                   arity,
		"mcommit x 2 a k 1":                                     arity,
		"mcommit x 2 a k 1 a k 1":                               twice,
		"mcommit " + strings.Repeat("x", 33) + " 1 a k 1":       ids,
		"mextend x x 1 a k":                                     "ERR time " + unit,
		"mextend x 25h 1 a k":                                   "ERR time must be at most 24h, got 25h",
		"mextend x 1s 33 a k":                                   n + "33",
		"mextend x 1s 1 a k b":                                  arity,
		"mextend x 1s 2 a k a k":                                twice,
	} {
		var err error
		switch all := words("cl." + args); string(all[0]) {
		case "cl.mreserve":
			_, _, err = Holding(limits, 0, all)
		case "cl.mcommit":
			_, _, err = Settling(limits, 0, all)
		default:
			_, _, err = Extending(limits, 0, all)
		}
		if err == nil || reply.Text(err) != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if _, err := holdID(nil); err == nil {
		t.Error("an id without bytes is taken")
	}
	for _, args := range []string{"mcommit x 2 nosuch k 1 a k 1", "mextend x 1s 2 nosuch k a k"} {
		all := words("cl." + args)
		s, unknown, err := Settling(limits, 0, all)
		if args[1] == 'e' {
			_, unknown, err = Extending(limits, 0, all)
		} else if s.Pairs[0].Named.Constant != limiter.Unlimited {
			t.Error("an unknown limit would be debited")
		}
		if err != nil || unknown == nil {
			t.Errorf("%s: %v, %v", args, unknown, err)
		}
	}
}
