package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
)

// agedKey creates a key whose state equals a new one's a second after commandstest.T0.
type agedKey func(t *testing.T, s store.Store, key store.Key)

func operate(t *testing.T, s store.Store, key store.Key, o limiter.Operation) limiter.Operation {
	t.Helper()
	if err := s.Apply(commandstest.T0, key, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// agedFunnel has units that leak for days.
func agedFunnel(t *testing.T) funnel.Limit {
	t.Helper()
	l, err := funnel.NewLimit(funnel.Capacity, 9, 1, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// agedKeys returns one of each kind, and funnels that are empty long before their former TAT.
func agedKeys(t *testing.T) map[string]agedKey {
	t.Helper()
	l := agedFunnel(t)
	reserve := limiter.Operation{Verb: limiter.Reserve, Funnel: l, Quantity: 2, ID: 1, TTLNs: commandstest.Sec}
	all := map[string]agedKey{
		"a reservation that expires": func(t *testing.T, s store.Store, key store.Key) { t.Helper(); operate(t, s, key, reserve) },
		"one of two that is cancelled": func(t *testing.T, s store.Store, key store.Key) {
			t.Helper()
			other := reserve
			other.ID = 2
			operate(t, s, key, reserve)
			operate(t, s, key, other)
			operate(t, s, key, limiter.Operation{Verb: limiter.Commit, ID: 2})
		},
		"a reservation that is cancelled": func(t *testing.T, s store.Store, key store.Key) {
			t.Helper()
			operate(t, s, key, reserve)
			operate(t, s, key, limiter.Operation{Verb: limiter.Commit, ID: 1})
		},
		"a turn that is given back": func(t *testing.T, s store.Store, key store.Key) {
			t.Helper()
			o := operate(t, s, key, limiter.Operation{Verb: limiter.Wait, Funnel: l, Quantity: 2})
			operate(t, s, key, limiter.Operation{Verb: limiter.GiveBack, DebitNs: o.DebitNs})
		},
		"a lease that is released": func(t *testing.T, s store.Store, key store.Key) {
			t.Helper()
			operate(t, s, key, limiter.Operation{Verb: limiter.Acquire, Max: 2, ID: 1, TTLNs: 60 * commandstest.Sec})
			operate(t, s, key, limiter.Operation{Verb: limiter.Release, ID: 1})
		},
	}
	for kind := range limiter.Kinds {
		all[kind.String()] = func(t *testing.T, s store.Store, key store.Key) {
			t.Helper()
			state, err := limitertest.State(kind, commandstest.T0+commandstest.Sec, 3)
			if err == nil {
				// Approximate windows still count.
				limiter.Shift(&state, min(0, commandstest.T0+commandstest.Sec-state.ExpiresNs))
				_, _, err = store.SetIf(s, commandstest.T0, key, state, store.Always)
			}
			if err != nil {
				t.Fatal(err)
			}
			operate(t, s, key, limiter.Operation{Verb: limiter.Expire, AtNs: commandstest.T0 + commandstest.Sec}) // a bucket
		}
	}
	return all
}

// agedCall returns a call that reads key k, unless the command only counts keys.
func agedCall(c *catalog.Command) (call []string, ok bool) {
	if c.Refusal != "" || c.Keys.None() && c.Flags&catalog.FlagWhole == 0 ||
		slices.Contains([]string{"dbsize", "info"}, c.FullName()) {
		return nil, false // DBSIZE and INFO may count expired keys
	}
	call = remoteCall(c)
	for i, arg := range call {
		if arg == "held" || arg == "other" {
			call[i] = "k"
		}
	}
	return call, true
}

// opener returns an empty store and a function that closes it.
type opener func() (s store.Store, end func())

// bothStores returns the store in memory, and a Redis by the callers' clock.
func bothStores(t *testing.T) map[string]opener {
	t.Helper()
	redis := redistest.Server(t)
	pool, err := servers.Open(servers.Config{URL: "redis://" + redis.Addr, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	opened := 0
	return map[string]opener{
		"memory": func() (store.Store, func()) { return shard.New(), func() {} },
		"remote": func() (store.Store, func()) {
			opened++
			s, err := remote.Open(remote.Config{
				Pool: pool, KeyPrefix: fmt.Sprintf("%d:", opened), Timeout: time.Minute, CallersTime: true,
				Now: func() int64 { return time.Now().UnixNano() },
			})
			if err != nil {
				t.Fatal(err)
			}
			return s, s.Close
		},
	}
}

// withKey returns a harness whose store has a key created at T0, if any, and whose clock is afterNs later.
func withKey(t *testing.T, s store.Store, makeKey agedKey, afterNs int64) *commandstest.Harness {
	t.Helper()
	r := commandstest.New(func(c *commands.Config) { c.Store, c.Databases, c.StoreTimeout = s, 1, time.Minute })
	if makeKey != nil {
		makeKey(t, s, store.Key{Name: []byte("k")})
	}
	r.Clock.Set(commandstest.T0 + afterNs)
	return r
}

// TestAsNewIsAbsent: every command treats a key with a new state as absent, in memory and on Redis.
func TestAsNewIsAbsent(t *testing.T) {
	keys := agedKeys(t)
	for where, open := range bothStores(t) {
		if testing.Short() && where == "remote" {
			continue
		}
		eachCall(func(c *catalog.Command, _ []string) {
			if call, ok := agedCall(c); ok {
				t.Run(where+"/"+c.FullName(), func(t *testing.T) { testAsNewIsAbsent(t, open, keys, c, call) })
			}
		})
	}
}

func testAsNewIsAbsent(t *testing.T, open opener, keys map[string]agedKey, c *catalog.Command, call []string) {
	t.Helper()
	const looks = "EXISTS k\r\nPTTL k\r\nTYPE k\r\nOBJECT ENCODING k\r\nDUMP k\r\nCL.PEEK k 8 1 1000000 1\r\n"
	ask := func(makeKey agedKey) (reply, after string) {
		s, end := open()
		defer end()
		r := withKey(t, s, makeKey, commandstest.Sec)
		reply, _, _ = commandstest.Converse(t, r.Session(), resptest.Encode(call...))
		return reply, commandstest.Say(t, r.Session(), looks)
	}
	want, wantAfter := ask(nil)
	for name, makeKey := range keys {
		got, gotAfter := ask(makeKey)
		if varies(c) && sameKinds(resptest.ParseAll(t, got), resptest.ParseAll(t, want)) {
			continue
		}
		if got != want || gotAfter != wantAfter {
			t.Errorf("%s, %q: got %q, and then %q; want %q, and then %q", name, call, got, gotAfter, want, wantAfter)
		}
	}
}

// TestLooksChangeNothing: reads and requests of nothing change neither a key's bytes nor its WATCH, even
// after a reservation has expired.
func TestLooksChangeNothing(t *testing.T) {
	keys := agedKeys(t)
	expires := keys["a reservation that expires"]
	keys["one of two that has expired"] = func(t *testing.T, s store.Store, key store.Key) {
		t.Helper()
		expires(t, s, key)
		o := limiter.Operation{
			Verb: limiter.Reserve, Funnel: agedFunnel(t), Quantity: 3, ID: 2, TTLNs: 60 * commandstest.Sec,
		}
		operate(t, s, key, o)
	}
	keys["one that has expired, with a debit"] = func(t *testing.T, s store.Store, key store.Key) {
		t.Helper()
		expires(t, s, key)
		operate(t, s, key, limiter.Operation{Verb: limiter.Wait, Funnel: agedFunnel(t), Quantity: 1})
	}
	var looks [][]string
	for _, look := range []string{
		"CL.THROTTLE k 8 1 1000000 0", "CL.RESERVE k 8 1 1000000 0 1000", "CL.BTHROTTLE k 8 1 1000000 0 1",
		"CL.PEEK k 8 1 1000000 1", "CL.COMMIT k 99 1", "CL.FIXEDWINDOW k 5 10 0", "CL.SLIDINGWINDOW k 5 10 0",
		"CL.SLIDINGWINDOW k 5 10 0 APPROX", "CL.BUCKET TAKE k 5 0", "CL.BUCKET LEN k", "CL.CONCURRENCY LEN k",
		"CL.MTHROTTLE 1 k 8 1 1000000 0",
	} {
		looks = append(looks, strings.Fields(look))
	}
	eachCall(func(c *catalog.Command, _ []string) {
		if call, ok := agedCall(c); ok && c.Flags&catalog.FlagReadonly != 0 &&
			c.Flags&catalog.FlagWhole == 0 {
			looks = append(looks, call)
		}
	})
	for where, open := range bothStores(t) {
		for name, makeKey := range keys {
			if strings.HasSuffix(name, "given back") || strings.HasSuffix(name, "released") ||
				name == "a reservation that is cancelled" {
				continue // the key is absent at once
			}
			for _, afterNs := range []int64{commandstest.Sec / 2, 2 * commandstest.Sec} {
				s, end := open()
				r := withKey(t, s, makeKey, afterNs)
				testLooks(t, r, fmt.Sprintf("%s, %s, after %d ms", where, name, afterNs/1e6),
					where == "memory", looks)
				end()
			}
		}
	}
}

func testLooks(t *testing.T, r *commandstest.Harness, what string, watches bool, looks [][]string) {
	t.Helper()
	watcher, other := r.Session(), r.Session()
	const state = "DUMP k\r\nPTTL k\r\n"
	before := commandstest.Say(t, other, state)
	for _, look := range looks {
		if watches {
			commandstest.Say(t, watcher, "WATCH k\r\n")
		}
		commandstest.Converse(t, r.Session(), resptest.Encode(look...))
		if got := commandstest.Say(t, other, state); got != before {
			t.Fatalf("%s: %s makes %q of %q", what, look, got, before)
		}
		got := commandstest.Say(t, watcher, "MULTI\r\nPING\r\nEXEC\r\n")
		if !strings.HasSuffix(got, "*1\r\n"+commandstest.Pong) {
			t.Errorf("%s: %s is noticed by who watches the key: %q", what, look, got)
		}
	}
}
