package session_test

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/session"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/resptest"
)

// TestNamedLimitsCountWhatIsAnswered: each successful call once, in a batch, in EXEC and in scripts, with any
// store.
func TestNamedLimitsCountWhatIsAnswered(t *testing.T) {
	const native, interpreted = "return redis.call('cl.check', ARGV[1], ARGV[2])", "local r = redis.pcall('cl.check', ARGV[1], ARGV[2]) return r"
	check := func(call string, n int) string { return strings.Repeat("CL.CHECK "+call+"\r\n", n) }
	eval := func(script, name, key string) string {
		return resptest.Encode("EVAL", script, "1", name+":"+key, name, key)
	}
	for _, tt := range []struct {
		in, name                 string
		allowed, limited, shadow int
	}{
		{check("l k", 7), "l", 5, 2, 0},
		{check("shadow k", 7), "shadow", 5, 0, 2},
		{check("l k 0", 3) + check("l k -1", 2) + check("l k 2", 3), "l", 2, 1, 0},
		{check("l k", 2*observe.MaxBatch+1), "l", 5, 2*observe.MaxBatch - 4, 0},
		{strings.Repeat(check("l k", 1)+check("shadow k", 2), 9), "shadow", 5, 0, 13},
		{check("bad k", 3) + check("l k", 2), "bad", 0, 0, 0},
		{"MULTI\r\n" + check("l k", 7) + "EXEC\r\n", "l", 5, 2, 0},
		{"WATCH l:k\r\n" + check("l k", 1) + "MULTI\r\n" + check("l k", 7) + "EXEC\r\n", "l", 1, 0, 0},
		{"CL.THROTTLE l:k 1 1 60\r\n" + check("l k", 2), "l", 0, 0, 0}, // of another kind
		{strings.Repeat(eval(native, "l", "k"), 7), "l", 5, 2, 0},
		{strings.Repeat(eval(native, "shadow", "k"), 7), "shadow", 5, 0, 2},
		{strings.Repeat(eval(native, "bad", "k"), 7), "bad", 0, 0, 0},
		{strings.Repeat(eval(interpreted, "l", "k"), 7), "l", 5, 2, 0},
		{"CLIENT REPLY SKIP\r\n" + check("l k", 2), "l", 2, 0, 0},
		{"CL.LIMIT SET l 0 1 60\r\n" + check("l k", 3) + "CL.LIMIT SET l 4 1 60\r\n", "l", 1, 2, 0},
	} {
		stores := []store.Store{shard.New(), session.NewFullLaterStore()}
		if tt.name == "bad" {
			stores = []store.Store{brokenStore{shard.New()}, storetest.Later(brokenStore{shard.New()})}
		}
		for _, on := range stores {
			s := commandstest.New(withStore(on)).Session()
			commandstest.Say(t, s, "CL.LIMIT SET l 4 1 60\r\nCL.LIMIT SET shadow 4 1 60 SHADOW\r\nCL.LIMIT SET bad 4 1 60\r\n")
			commandstest.Say(t, s, tt.in)
			want := fmt.Sprintf("allowed\r\n:%d\r\n$7\r\nlimited\r\n:%d\r\n$14\r\nshadow_limited\r\n:%d\r\n", tt.allowed, tt.limited, tt.shadow)
			if got := commandstest.Say(t, s, "CL.LIMIT GET "+tt.name+"\r\n"); !strings.Contains(got, want) {
				t.Errorf("%.80q, %T: got %q, want %q", tt.in, on, got, want)
			}
		}
	}
}

// TestLooksAboveALoweredMaximum are limited, by a named limit of one rule or of several as by the rule's own
// command, and a refund is not.
func TestLooksAboveALoweredMaximum(t *testing.T) {
	for _, tt := range []struct{ rule, own string }{ // %d is the maximum
		{"SLIDINGWINDOW %d 3600", "CL.SLIDINGWINDOW own %d 3600 %d"},
		{"SLIDINGWINDOW %d 3600 APPROX", "CL.SLIDINGWINDOW own %d 3600 %d APPROX"},
		{"FIXEDWINDOW %d 3600", "CL.FIXEDWINDOW own %d 3600 %d"},
		{"QUOTA %d YEAR", "CL.QUOTA own %d YEAR %d"},
		{"TOKENBUCKET %d 1 3600", "CL.TOKENBUCKET own %d 1 3600 %d"},
	} {
		for _, besides := range []string{"", " QUOTA 100 DAY", " QUOTA 100 DAY FUNNEL 99 1 1 FIXEDWINDOW 100 60"} {
			for _, on := range []store.Store{shard.New(), session.NewFullLaterStore()} {
				s := commandstest.New(withStore(on)).Session()
				say := func(in string, args ...any) string { return commandstest.Say(t, s, fmt.Sprintf(in, args...)+"\r\n") }
				set := func(most int) { say("CL.LIMIT SET l "+tt.rule+besides, most) }
				set(5)
				say("CL.CHECK l k 3")
				say(tt.own, 5, 3)
				set(2)
				for _, call := range []struct {
					quantity int
					limited  string
				}{{0, "1"}, {1, "1"}, {-1, "0"}, {0, "0"}, {-1, "0"}} {
					got, want := say("CL.CHECK l k %d", call.quantity), say(tt.own, 2, call.quantity)
					if got != want || !strings.HasPrefix(got, "*5\r\n:"+call.limited) {
						t.Errorf("%s%s, %T, quantity %d: %q, and its own command %q", tt.rule, besides, on, call.quantity, got, want)
					}
				}
			}
		}
	}
}

// TestTheSameOverrideAgain continues its count, and so does the limit, whatever was called between.
func TestTheSameOverrideAgain(t *testing.T) {
	rules := []string{"FUNNEL 8 1 3600", "TOKENBUCKET 9 1 3600", "FIXEDWINDOW 9 3600", "SLIDINGWINDOW 9 3600", "SLIDINGWINDOW 9 3600 APPROX", "QUOTA 9 YEAR"}
	between := []string{"FUNNEL 8 1 60 QUOTA 9 DAY", "FIXEDWINDOW 9 60", "FUNNEL 8 1 7200", "UNLIMITED"}
	for _, on := range []func() store.Store{func() store.Store { return shard.New() }, func() store.Store { return session.NewFullLaterStore() }} {
		for _, own := range rules {
			for _, other := range rules {
				if own == other {
					continue
				}
				s := commandstest.New(withStore(on())).Session()
				say := func(in string) string { return commandstest.Say(t, s, in+"\r\n") }
				left := func(want int, when string) {
					t.Helper()
					if got := say("CL.CHECK l k 0"); !strings.HasPrefix(got, fmt.Sprintf("*5\r\n:0\r\n:9\r\n:%d\r\n", want)) {
						t.Errorf("%s, overridden by %s: %q has not %d left %s", own, other, got, want, when)
					}
				}
				say("CL.LIMIT SET l " + own)
				say("CL.CHECK l k 1")
				say("CL.LIMIT OVERRIDE l k " + other)
				left(9, "at the first override")
				say("CL.CHECK l k 3")
				for _, rule := range between {
					say("CL.LIMIT OVERRIDE l k " + rule)
					say("CL.CHECK l k 2")
				}
				say("CL.LIMIT OVERRIDE l k DEL")
				left(8, "without an override")
				say("CL.CHECK l k 1")
				say("CL.CHECK l k 100") // is denied
				say("CL.CHECK l k 1")
				say("CL.LIMIT OVERRIDE l k " + other)
				left(6, "at the second override")
				say("CL.CHECK l k 1")
				left(5, "after another call")
				say("CL.LIMIT OVERRIDE l k DEL")
				left(6, "at the end")
			}
		}
	}
}
