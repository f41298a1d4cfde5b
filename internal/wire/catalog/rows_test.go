package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/test/redistest"
)

// TestRefusedRows are in no list, but what is wrong with their arguments is said before why they are refused.
func TestRefusedRows(t *testing.T) {
	table := New()
	redis := redistest.Start(t)
	refused := 0
	for _, c := range table.Commands() {
		if c.Refusal == "" {
			continue
		}
		refused++
		if table.Lookup([]byte(c.Name)) != c || table.LookupShown([]byte(c.Name)) != nil || strings.ContainsAny(c.Refusal, "\r\n") {
			t.Errorf("%s: %+v", c.Name, c)
		}
		info, err := redis.Do(t.Context(), "COMMAND", "INFO", c.Name).Slice()
		if err != nil {
			t.Fatal(err)
		}
		if of, _ := info[0].([]any); of == nil || of[1] != int64(c.Arity) {
			t.Errorf("%s: arity %d, and Redis says %v", c.Name, c.Arity, of)
		}
	}
	if len(refusedRows()) != refused {
		t.Errorf("%d are refused of %d: some stand twice", refused, len(refusedRows()))
	}
}

// TestRefusalsOfData: of the values that limiters keep in Redis each type's commands are refused with the
// command to use instead.
func TestRefusalsOfData(t *testing.T) {
	redis := redistest.Start(t)
	table := New()
	for category, instead := range map[string]string{
		"string": "CL.THROTTLE ", "hash": "CL.THROTTLE ", "sortedset": "CL.SLIDINGWINDOW ", "list": "CL.BUCKET TAKE ", "set": "CL.CONCURRENCY ACQUIRE ",
	} {
		names, err := redis.Do(t.Context(), "ACL", "CAT", category).StringSlice()
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			c := table.Lookup([]byte(name))
			switch {
			case c == nil:
				t.Errorf("%s: unknown", name)
			case c.Refusal == "": // GET, SET and STRLEN are here
			case name == "sort" || name == "sort_ro": // of several categories
			case category == "list" && strings.Contains(c.Refusal, "CL.SLIDINGWINDOW "): // a log of times
			case category == "string" && strings.Contains(c.Refusal, "CL.FIXEDWINDOW "): // a counter
			case !strings.Contains(c.Refusal, instead) || !strings.Contains(c.Refusal, "; see "+seeRecipes+"#"):
				t.Errorf("%s: %s, want it to name %s", name, c.Refusal, instead)
			}
		}
	}
}

// TestCategories are Redis's for the same commands, and @refill.
func TestCategories(t *testing.T) {
	table := New()
	for name, want := range map[string]string{
		"get":            "read string fast",
		"set":            "write string slow",
		"dump":           "keyspace read slow",
		"restore":        "keyspace write slow dangerous",
		"del":            "keyspace write slow",
		"unlink":         "keyspace write fast",
		"eval":           "slow scripting",
		"eval_ro":        "slow scripting",
		"watch":          "fast transaction",
		"flushall":       "keyspace write slow dangerous refill",
		"keys":           "keyspace read slow dangerous",
		"acl|load":       "admin slow dangerous",
		"client|id":      "slow connection",
		"cl.throttle":    "write fast",
		"rl.throttle":    "write fast",
		"cl.refund":      "write fast refill",
		"cl.reset":       "write slow refill",
		"cl.peek":        "read fast",
		"cl.bthrottle":   "write fast blocking",
		"cl.bucket|take": "write fast",
		"cl.bucket|add":  "write fast refill",
		"cl.bucket|len":  "read fast",
		"cl.mreserve":    "write slow",
		"cl.mcommit":     "write slow",
		"cl.mextend":     "write slow",
		"memory|usage":   "read slow",
	} {
		if got := strings.Join(table.LookupFull([]byte(name)).AllCategories(), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestRowsAsRedis compares arity and flags with those of a real Redis: what is refused while the server loads
// is read off them, for one.
func TestRowsAsRedis(t *testing.T) {
	redis := redistest.Start(t)
	differ := map[string]string{}
	New().Each(func(r *Command) {
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
		for _, name := range []string{"write", "readonly", "admin", "pubsub", "noscript", "loading", "stale", "fast", "no_auth", "no_multi", "denyoom"} {
			if slices.Contains(flags, name) != slices.Contains(redisFlags, name) {
				differ[r.FullName()] += " " + name
			}
		}
		if r.Group == "string" || r.Group == "generic" {
			compareKeys(t, r, info)
			if got, want := slices.Sorted(slices.Values(r.AllCategories())), slices.Sorted(slices.Values(set(6))); !slices.Equal(got, want) {
				t.Errorf("%s: categories %q, and %q in Redis", r.FullName(), got, want)
			}
		}
	})
	want := map[string]string{"auth": " no_multi", "hello": " no_multi"} // COMPATIBILITY.md says so
	if !maps.Equal(differ, want) {
		t.Errorf("flags that only one of both has: %q, want %q", differ, want)
	}
}

// compareKeys compares the places of the keys and what is done to them with Redis's COMMAND INFO.
func compareKeys(t *testing.T, r *Command, info []any) {
	t.Helper()
	if got, want := []any{int64(r.Keys.First), int64(r.Keys.Last), int64(r.Keys.Step)}, info[3:6]; !slices.Equal(got, want) {
		t.Errorf("%s: keys %v, and %v in Redis", r.FullName(), got, want)
	}
	ours := [][]string{r.Keys.Flags, r.Keys.SecondFlags}
	for i, spec := range info[8].([]any) {
		parts := spec.([]any)
		flags := fmt.Sprint(parts[slices.Index(parts, any("flags"))+1])
		if got := fmt.Sprint(ours[i]); got != flags {
			t.Errorf("%s: key %d is %s, and %s in Redis", r.FullName(), i+1, got, flags)
		}
	}
}

// TestFlagNames: those that Redis shows, in its order.
func TestFlagNames(t *testing.T) {
	for want, f := range map[string]Flag{
		"": 0,
		"write readonly denyoom module admin pubsub noscript blocking loading stale fast no_auth no_mandatory_keys no_multi movablekeys": ^Flag(0),
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
