package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/store/rdb"
	"cellserver/internal/test/redistest"
	"cellserver/internal/test/resptest"
)

// states returns a state of each kind, and one with a long payload.
func states(t *testing.T) (all []limiter.State) {
	t.Helper()
	for kind := range limiter.Kinds {
		s, err := limitertest.State(kind, commandstest.T0+limitertest.LifeNs, 3)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	budget, err := limitertest.Budget(10_000, 3600)
	if err != nil {
		t.Fatal(err)
	}
	for _, holds := range []int{1, 5, 4096} {
		s, err := limitertest.Held(budget, commandstest.T0, holds)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	limit, err := window.NewExactLimit(funnel.Seconds, window.MaxExact, 3600)
	if err != nil {
		t.Fatal(err)
	}
	long, r := limiter.State{}, limiter.Rule{Kind: limiter.SlidingWindow, Packed: limit.Packed()}
	for i := range int64(window.MaxExact) {
		if _, changed, err := r.Decide(&long, commandstest.T0+i*i, 1); !changed || err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	return append(all, long)
}

func payloadOf(s *limiter.State) string { return string(rdb.NewCodec().Append(nil, s)) }

// TestStatesTravel: a restored state is dumped unchanged, even through a redis-server, which compresses it.
func TestStatesTravel(t *testing.T) {
	redis, ctx := redistest.Start(t), t.Context()
	for _, s := range states(t) {
		c, payload := commandstest.New().Session(), payloadOf(&s)
		if got := commandstest.Say(t, c, resptest.Encode("RESTORE", "k", "0", payload)+"TYPE k\r\n"); got != "+OK\r\n+"+s.Kind.Type()+"\r\n" {
			t.Errorf("%s: got %q", s.Kind, got)
		}
		if got := dumpOf(t, c, "k"); got != payload {
			t.Errorf("%s: restored %q, dumped %q", s.Kind, payload, got)
		}
		if err := redis.RestoreReplace(ctx, "k", 0, payload).Err(); err != nil {
			t.Fatalf("%s: redis-server restores: %v", s.Kind, err)
		}
		theirs, err := redis.Dump(ctx, "k").Result()
		if err != nil {
			t.Fatal(err)
		}
		commandstest.Say(t, c, resptest.Encode("RESTORE", "k2", "0", theirs))
		if got := dumpOf(t, c, "k2"); got != payload {
			t.Errorf("%s: restored %q from redis-server, dumped %q", s.Kind, theirs, got)
		}
	}
}

// TestDamagedStatesAreRefused: a payload with a valid checksum and an impossible state creates no key.
func TestDamagedStatesAreRefused(t *testing.T) {
	for _, s := range states(t) {
		if s.Kind == limiter.Funnel || s.Kind == limiter.Value {
			continue
		}
		for name, change := range map[string]func(s *limiter.State){
			"no payload":     func(s *limiter.State) { s.Payload = nil },
			"a byte less":    func(s *limiter.State) { s.Payload = s.Payload[1:] },
			"another kind":   func(s *limiter.State) { s.Kind = limiter.Kinds },
			"something huge": func(s *limiter.State) { s.Payload = make([]byte, limiter.MaxPayloadBytes+1) },
		} {
			if s.Kind == limiter.Named && name == "no payload" {
				continue // a look may leave that, where all holds have ended
			}
			bad := s
			change(&bad)
			c := commandstest.New().Session()
			got := commandstest.Say(t, c, resptest.Encode("RESTORE", "k", "0", payloadOf(&bad))+"EXISTS k\r\n")
			const want = "-ERR the state in the payload is not one that DUMP has returned, or of a later version of this server\r\n:0\r\n"
			if got != want {
				t.Errorf("%s with %s: got %.200q", s.Kind, name, got)
			}
		}
	}
}

// TestKindsThroughTransactions: commands on keys know kinds in EXEC and in scripts.
func TestKindsThroughTransactions(t *testing.T) {
	for _, s := range states(t) {
		payload, typed := payloadOf(&s), s.Kind.Type()
		c := commandstest.New().Session()
		restore := resptest.Encode("RESTORE", "k", "0", payload)
		want := "+OK\r\n" + strings.Repeat("+QUEUED\r\n", 4) + "*4\r\n+OK\r\n+" + typed + "\r\n" + bulk(payload) + ":1\r\n"
		if got := commandstest.Say(t, c, "MULTI\r\n"+restore+"TYPE k\r\nDUMP k\r\nDEL k\r\nEXEC\r\n"); got != want {
			t.Errorf("%s in EXEC: got %.300q, want %.300q", s.Kind, got, want)
		}
		script := "redis.call('RESTORE', KEYS[1], 0, ARGV[1]) return {redis.call('TYPE', KEYS[1]).ok, redis.call('DUMP', KEYS[1]) == ARGV[1]}"
		want = "*2\r\n" + bulk(typed) + ":1\r\n"
		if got := commandstest.Say(t, c, resptest.Encode("EVAL", script, "1", "k", payload)); got != want {
			t.Errorf("%s in a script: got %.300q, want %.300q", s.Kind, got, want)
		}
		commandstest.ExpectLike(t, c, fmt.Sprintf("MULTI\r\nSCAN 0 TYPE %s\r\nEXEC\r\n", typed),
			"…*1\r\n$1\r\nk\r\n")
	}
}

// TestReservingFunnel: a funnel with reservations is a string; GET returns its TAT including them.
func TestReservingFunnel(t *testing.T) {
	s, err := limitertest.State(limiter.Reserving, commandstest.T0+limitertest.LifeNs, 3)
	if err != nil {
		t.Fatal(err)
	}
	tatNs, err := s.TAT(commandstest.T0)
	if err != nil {
		t.Fatal(err)
	}
	c := commandstest.New().Session()
	if got, want := commandstest.Say(t, c, resptest.Encode("RESTORE", "k", "0", payloadOf(&s))+"GET k\r\nOBJECT ENCODING k\r\n"+
		setCall("k", commandstest.T0+commandstest.Sec, "GET")+"OBJECT ENCODING k\r\n"),
		"+OK\r\n"+valueReply(tatNs)+bulk("reservations")+valueReply(tatNs)+bulk("int"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMemoryUsageOfPayloads includes a key's payload.
func TestMemoryUsageOfPayloads(t *testing.T) {
	all := states(t)
	long := all[len(all)-1]
	c := commandstest.New().Session()
	commandstest.Say(t, c, resptest.Encode("RESTORE", "long", "0", payloadOf(&long))+"CL.FIXEDWINDOW short 5 60\r\n")
	replies := resptest.ParseAll(t, commandstest.Say(t, c, "MEMORY USAGE long\r\nMEMORY USAGE short\r\n"))
	if least := int64(len(long.Payload)); replies[0].Number < least || replies[0].Number-replies[1].Number < least/2 {
		t.Errorf("%+v for %d bytes and for 8", replies, least)
	}
}
