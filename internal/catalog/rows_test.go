package catalog

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/redistest"
)

// TestRefusedRows are in no list, but what is wrong with their arguments is said before why they are refused.
func TestRefusedRows(t *testing.T) {
	arities := map[string]int{
		"subscribe": -2, "psubscribe": -2, "ssubscribe": -2, "pubsub": -2, "unsubscribe": -1, "punsubscribe": -1,
		"sunsubscribe": -1, "publish": 3, "spublish": 3, "cluster": -2, "readonly": 1, "readwrite": 1, "asking": 1,
		"sync": 1, "psync": -3, "replconf": -1, "failover": -1, "swapdb": 3,
	}
	table := New()
	for name, arity := range arities {
		c := table.Lookup([]byte(name))
		if c == nil || c.Arity != arity || c.Refusal == "" || table.LookupShown([]byte(name)) != nil {
			t.Errorf("%s: %+v, want arity %d and a refusal", name, c, arity)
		}
	}
	var refused []string
	for _, c := range table.Commands() {
		if c.Refusal != "" {
			refused = append(refused, c.Name)
		}
	}
	if want := slices.Sorted(maps.Keys(arities)); !slices.Equal(refused, want) {
		t.Errorf("%q are refused, want %q", refused, want)
	}
}

// TestCategories are Redis's for the same commands, and @refill.
func TestCategories(t *testing.T) {
	table := New()
	for name, want := range map[string]string{
		"get":          "read string fast refill",
		"set":          "write string slow refill",
		"dump":         "keyspace read slow refill",
		"restore":      "keyspace write slow dangerous refill",
		"del":          "keyspace write slow refill",
		"unlink":       "keyspace write fast refill",
		"eval":         "slow scripting",
		"eval_ro":      "slow scripting",
		"watch":        "fast transaction",
		"flushall":     "keyspace write slow dangerous refill",
		"keys":         "keyspace read slow dangerous",
		"acl|load":     "admin slow dangerous",
		"client|id":    "slow connection",
		"cl.throttle":  "write fast",
		"memory|usage": "read slow",
	} {
		if got := strings.Join(table.LookupFull([]byte(name)).AllCategories(), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestRowsAsRedis compares arity and flags with those of a real Redis: what is refused while the server loads is
// read off them, for one.
func TestRowsAsRedis(t *testing.T) {
	redis := redistest.Start(t)
	differ := map[string]string{}
	eachRow(New().Shown(), func(r *Command) {
		var info []any
		if all, err := redis.Do(t.Context(), "COMMAND", "INFO", r.FullName()).Slice(); err != nil {
			t.Fatal(err)
		} else if info, _ = all[0].([]any); info == nil {
			return // Redis does not have it, or a later one has
		}
		set := func(at int) (names []string) {
			for _, name := range info[at].([]any) {
				names = append(names, strings.TrimPrefix(name.(string), "@"))
			}
			return names
		}
		if int64(r.Arity) != info[1] {
			t.Errorf("%s: arity %d, and %d in Redis", r.FullName(), r.Arity, info[1])
		}
		flags, redisFlags := r.Flags.Names(), set(2)
		for _, name := range []string{"write", "readonly", "admin", "noscript", "loading", "stale", "fast", "no_auth", "no_multi"} {
			if slices.Contains(flags, name) != slices.Contains(redisFlags, name) {
				differ[r.FullName()] += " " + name
			}
		}
	})
	want := map[string]string{"auth": " no_multi", "hello": " no_multi"} // COMPATIBILITY.md says so
	if !maps.Equal(differ, want) {
		t.Errorf("flags that only one of both has: %q, want %q", differ, want)
	}
}

// TestFlagNames: those that Redis shows, in its order.
func TestFlagNames(t *testing.T) {
	for want, f := range map[string]Flag{
		"": 0,
		"write readonly denyoom module admin noscript loading stale fast no_auth no_mandatory_keys no_multi movablekeys": ^Flag(0),
		"write": FlagWrite | FlagWhole, "movablekeys": FlagMovableKeys | FlagNotQueued, "admin no_auth": FlagNoAuth | FlagAdmin | FlagScript,
	} {
		if got := strings.Join(f.Names(), " "); got != want {
			t.Errorf("%b: %s, want %s", f, got, want)
		}
	}
}

func TestAcceptsArity(t *testing.T) {
	for _, tt := range []struct {
		arity, n int
		want     bool
	}{
		{2, 1, false}, {2, 2, true}, {2, 3, false}, {-2, 1, false}, {-2, 2, true}, {-2, 3, true}, {-2, -2, true}, {0, 0, true}, {0, 1, false},
	} {
		if got := (&Command{Arity: tt.arity}).AcceptsArity(tt.n); got != tt.want {
			t.Errorf("arity %d: %d are accepted: %t", tt.arity, tt.n, got)
		}
	}
}
