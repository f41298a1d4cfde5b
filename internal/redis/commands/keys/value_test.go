package keys_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/reply"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/redistest"
	"cellserver/internal/test/resptest"
)

func setCall(key string, tatNs int64, options ...string) string {
	return resptest.Encode(append([]string{"SET", key, strconv.FormatInt(tatNs, 10)}, options...)...)
}

// funnelCall makes a key a funnel, or sets its TAT.
func funnelCall(key string, tatNs int64) string {
	s := limiter.ValueOf(strconv.AppendInt(nil, tatNs, 10), limiter.NeverNs)
	return resptest.Encode("RESTORE", key, "0", payloadOf(&s), "REPLACE", "FUNNEL")
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func valueReply(tatNs int64) string { return bulk(strconv.FormatInt(tatNs, 10)) }

// dumpOf returns the DUMP of an existing key.
func dumpOf(t *testing.T, s *commandstest.Client, key string) string {
	t.Helper()
	return resptest.ParseAll(t, commandstest.Say(t, s, resptest.Encode("DUMP", key)))[0].Text
}

// TestSetThenThrottle: a funnel that is set or restored decides by its TAT, as a used one does.
func TestSetThenThrottle(t *testing.T) {
	racetest.SkipAlone(t)
	for _, aheadNs := range []int64{1, 999_999, 1_000_000, commandstest.Sec - 1, commandstest.Sec, 45*commandstest.Sec + 1, 50 * commandstest.Sec, 86_400 * commandstest.Sec, math.MaxInt64 / 4, 1 << 62} {
		for _, l := range [][3]int64{{4, 1, 10}, {0, 1, 1}, {15, 30, 60}, {99, 1500, 1}, {0, 1, 4_611_686_018}} {
			limit, err := funnel.NewLimit(funnel.Burst, l[0], l[1], l[2])
			if err != nil {
				t.Fatal(err)
			}
			for _, quantity := range []int64{-1, 0, 1, 3, 100} {
				tatNs, want := limit.Throttle(commandstest.T0+aheadNs, commandstest.T0, quantity)
				s := commandstest.New().Session()
				commandstest.Say(t, s, funnelCall("a", commandstest.T0+aheadNs)+funnelCall("c", commandstest.T0+1)+setCall("c", commandstest.T0+aheadNs))
				commandstest.Say(t, s, resptest.Encode("RESTORE", "b", "0", dumpOf(t, s, "a")))
				for _, key := range []string{"a", "b", "c"} {
					limited := int64(0)
					if want.Limited {
						limited = 1
					}
					now := "$-1\r\n"
					if tatNs > commandstest.T0 {
						now = valueReply(tatNs)
					}
					call := fmt.Sprintf("CL.THROTTLE %s %d %d %d %d\r\n", key, l[0], l[1], l[2], quantity)
					if got := commandstest.Say(t, s, call+"GET "+key+"\r\n"); got != resptest.Ints(limited, want.Limit, want.Remaining, want.RetryAfter, want.ResetAfter)+now {
						t.Errorf("%q with a TAT in %d ns: got %q, want %+v and a TAT of %d", call, aheadNs, got, want, tatNs)
					}
				}
			}
		}
	}
}

// TestSetTogether in EXEC, in scripts, beside commands on all keys and under a WATCH, as alone.
func TestSetTogether(t *testing.T) {
	const tatNs = commandstest.T0 + 30*commandstest.Sec
	queued := func(n int) string { return "+OK\r\n" + strings.Repeat("+QUEUED\r\n", n) }
	set, value := setCall("k", tatNs), valueReply(tatNs)
	from := commandstest.New().Session()
	commandstest.Say(t, from, set)
	payload := dumpOf(t, from, "k")
	restore := resptest.Encode("RESTORE", "k", "0", payload)
	const busy = "-BUSYKEY Target key name already exists.\r\n"
	const notTAT = "-" + string(reply.ErrNotTAT) + "\r\n"
	eval := func(script string, argv ...string) string {
		return resptest.Encode(append([]string{"EVAL", script, "1", "k"}, argv...)...)
	}
	many := strings.Repeat("CL.THROTTLE k 4 1 10 0\r\n", 1001) // enough for a snapshot
	for _, tt := range []struct{ name, in, want string }{
		{"EXEC", "MULTI\r\n" + set + "GET k\r\n" + setCall("k", tatNs+1, "NX", "GET") + restore + "DEL k\r\n" + restore + "DUMP k\r\nEXEC\r\n",
			queued(7) + "*7\r\n+OK\r\n" + value + value + busy + ":1\r\n+OK\r\n" + bulk(payload)},
		{"EXEC with all keys", "MULTI\r\nDBSIZE\r\n" + set + setCall("k", tatNs+1, "NX") + restore + "DBSIZE\r\nEXEC\r\n",
			queued(5) + "*5\r\n:0\r\n+OK\r\n$-1\r\n" + busy + ":1\r\n"},
		{"a TAT that is refused in EXEC", "MULTI\r\n" + funnelCall("k", tatNs) + "SET k 5\r\nGET k\r\nEXEC\r\n", queued(3) + "*3\r\n+OK\r\n" + notTAT + value},
		{"a TAT that is refused beside values", funnelCall("k", tatNs) + "MSET a 1 k 5\r\nEXISTS a\r\n", "+OK\r\n" + notTAT + ":0\r\n"},
		{"a script", eval("return {redis.call('SET', KEYS[1], ARGV[1]), redis.call('SET', KEYS[1], ARGV[1], 'NX'), redis.call('GET', KEYS[1]), redis.call('DUMP', KEYS[1]) == ARGV[2]}",
			strconv.FormatInt(tatNs, 10), payload), "*4\r\n+OK\r\n$-1\r\n" + value + ":1\r\n"},
		{"a script that restores", eval("return redis.call('RESTORE', KEYS[1], 0, ARGV[1])", payload) + "GET k\r\n", "+OK\r\n" + value},
		{"a script that is refused", funnelCall("k", tatNs) + eval("return redis.pcall('SET', KEYS[1], 5).err") + "GET k\r\n", "+OK\r\n" + bulk(strings.TrimSuffix(notTAT[1:], "\r\n")) + value},
		{"a script that only reads", resptest.Encode("EVAL_RO", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "k", "5"), "-ERR Write commands are not allowed from read-only scripts."},
		{"a script with another key", eval("return redis.call('SET', 'other', 5)"), "-ERR script used the key 'other'"},
		{"a snapshot", "MULTI\r\n" + many + set + "EXEC\r\nGET k\r\n", queued(1002) + "*1002\r\n" + strings.Repeat(resptest.Ints(0, 5, 5, -1, 0), 1001) + "+OK\r\n" + value},
	} {
		s := commandstest.New().Session()
		if got := commandstest.Say(t, s, tt.in); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestSetUnderWatch: another client's write is noticed even if it changes nothing, as in Redis; a refused one
// is not.
func TestSetUnderWatch(t *testing.T) {
	const tatNs = commandstest.T0 + 30*commandstest.Sec
	for _, tt := range []struct {
		name, in string
		noticed  bool
	}{
		{"set", setCall("k", tatNs+1), true},
		{"set to what it was", setCall("k", tatNs), true},
		{"set with XX", setCall("k", tatNs+1, "XX", "GET"), true},
		{"not set, with NX", setCall("k", tatNs+1, "NX"), false},
		{"made", setCall("absent", tatNs, "NX"), true},
		{"not made, with XX", setCall("absent", tatNs, "XX"), false},
		{"refused", "SET k 5\r\nINCR k\r\nSTRLEN k\r\nMSET absent 1 k 5\r\nRENAME absent k\r\nRESTORE k 0 x\r\nRESTORE absent 0 x\r\nRESTORE k 0 x REPLACE\r\n", false},
		{"set if equal", setCall("k", tatNs, "IFEQ", strconv.FormatInt(tatNs, 10)), true},
		{"set if different", setCall("absent", tatNs, "IFNE", "5"), true},
		{"set together", "MSETEX 1 absent 5 NX EX 100\r\n", true},
		{"deleted if equal", resptest.Encode("DELIFEQ", "k", strconv.FormatInt(tatNs, 10)), true},
		{"compared in vain", "SET k text IFEQ 5\r\nSET absent 5 IFDEQ 0000000000000000\r\nDELEX k IFEQ 5\r\nDELEX absent\r\nDELIFEQ k 5\r\n" +
			"DIGEST k\r\nMSETNX absent 1 k 5\r\nMSETEX 2 absent 1 k 5 XX\r\nDELEX k IFDEQ x\r\n", false},
		{"dumped", "DUMP k\r\nDUMP absent\r\n", false},
		{"in EXEC", "MULTI\r\n" + setCall("k", tatNs) + "EXEC\r\n", true},
	} {
		r := commandstest.New()
		s, other := r.Session(), r.Session()
		commandstest.Say(t, s, funnelCall("k", tatNs)+"WATCH k absent\r\nMULTI\r\nPING\r\n")
		commandstest.Say(t, other, tt.in)
		want := "*1\r\n" + commandstest.Pong
		if tt.noticed {
			want = "*-1\r\n"
		}
		if got := commandstest.Say(t, s, "EXEC\r\n"); got != want {
			t.Errorf("%s: got %q, want %q", tt.name, got, want)
		}
	}
}

// TestSetWithoutRoom: without space no key is created, but an existing one is set.
func TestSetWithoutRoom(t *testing.T) {
	const oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
	const tatNs = commandstest.T0 + 30*commandstest.Sec
	s := commandstest.New(func(c *commands.Config) {
		c.Store.(*shard.Store).SetMaxBytes(1, store.NoEviction)
		c.Store.(*shard.Store).SetMaxValueBytes(1)
	}).Session()
	commandstest.Expect(t, s, funnelCall("k", tatNs)+"INCR k\r\nMSET k 1 l 1\r\nINCRBYFLOAT k 1\r\nSETEX k 5 v\r\nGET k\r\n", strings.Repeat(oom, 5)+"$-1\r\n")
	commandstest.Expect(t, s, "GETSET k 1\r\nMSETNX k 1 l 1\r\nMSETEX 2 k 1 l 1 EX 5\r\nSET k v IFNE w\r\nSET k v IFEQ w\r\nMSETEX 1 k 1 XX\r\nDELEX k\r\nDELIFEQ k v\r\n",
		strings.Repeat(oom, 4)+"$-1\r\n"+strings.Repeat(":0\r\n", 3))
	full := commandstest.New().Session()
	commandstest.Say(t, full, setCall("k", tatNs))
	restore := resptest.Encode("RESTORE", "k", "0", dumpOf(t, full, "k"), "REPLACE")
	set := setCall("k", tatNs)
	if got := commandstest.Say(t, s, set+setCall("k", tatNs, "XX")+setCall("k", tatNs, "NX", "GET")+restore+"MULTI\r\n"+set+restore+"EXEC\r\nMULTI\r\nDBSIZE\r\n"+set+"EXEC\r\nEXISTS k\r\n"); got !=
		oom+"$-1\r\n"+oom+oom+"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n"+oom+oom+"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:0\r\n"+oom+":0\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestSetIfAbsent: of many clients one creates the key, by SET and by RESTORE.
func TestSetIfAbsent(t *testing.T) {
	const clients, rounds = 4, 50
	r := commandstest.New(commandstest.Standing)
	one := r.Session()
	commandstest.Say(t, one, setCall("k", commandstest.T0+commandstest.Sec))
	payload := dumpOf(t, one, "k")
	for round := range rounds {
		key := "k" + strconv.Itoa(round)
		made := make([]bool, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				call := setCall(key, commandstest.T0+commandstest.Sec, "NX")
				if i%2 == 0 {
					call = resptest.Encode("RESTORE", key, "0", payload)
				}
				made[i] = commandstest.Say(t, r.Session(), call) == "+OK\r\n"
			})
		}
		wg.Wait()
		n := 0
		for _, ok := range made {
			if ok {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("round %d: %d of %d clients have made the key", round, n, clients)
		}
	}
}

// TestSetNeedsRights: to write the key, and with GET to read it.
func TestSetNeedsRights(t *testing.T) {
	const tatNs = commandstest.T0 + 30*commandstest.Sec
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user writer on >pw %W~* +@all", "user reader on >pw %R~* +@all",
		"user limiter on >pw ~* +@all -@refill")
	commandstest.Say(t, r.Session(), setCall("k", tatNs))
	payload := dumpOf(t, r.Session(), "k")
	set, setGet, restore := setCall("k", tatNs), setCall("k", tatNs, "GET"), resptest.Encode("RESTORE", "k", "0", payload, "REPLACE")
	const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	for user, want := range map[string]string{
		"writer":  "+OK\r\n" + noKey + "+OK\r\n" + noKey + noKey,
		"reader":  noKey + noKey + noKey + valueReply(tatNs) + bulk(payload),
		"limiter": "+OK\r\n" + valueReply(tatNs) + "+OK\r\n" + valueReply(tatNs) + bulk(payload),
	} {
		if got := commandstest.Say(t, r.Login(user), set+setGet+restore+"GET k\r\nDUMP k\r\n"); got != want {
			t.Errorf("%s: got %q, want %q", user, got, want)
		}
	}
}

// TestDumpAndRestoreWithRedis: redis-server restores our dumps, and we its.
func TestDumpAndRestoreWithRedis(t *testing.T) {
	redis, ctx := redistest.Start(t), t.Context()
	s := commandstest.New().Session()
	for _, aheadNs := range []int64{1, commandstest.Sec, 12_345_678_901, 1 << 40, 1 << 62} {
		tatNs := commandstest.T0 + aheadNs
		value := strconv.FormatInt(tatNs, 10)
		commandstest.Say(t, s, setCall("ours", tatNs))
		payload := dumpOf(t, s, "ours")
		if err := redis.RestoreReplace(ctx, "ours", 0, payload).Err(); err != nil {
			t.Fatalf("redis-server restores %q: %v", payload, err)
		}
		if got, err := redis.Get(ctx, "ours").Result(); got != value || err != nil {
			t.Errorf("redis-server has %q, %v, want %q", got, err, value)
		}
		if err := redis.Set(ctx, "theirs", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		dumped, err := redis.Dump(ctx, "theirs").Result()
		if err != nil || dumped != payload {
			t.Errorf("redis-server dumps %q, %v, want %q", dumped, err, payload)
		}
		commandstest.Expect(t, s, resptest.Encode("RESTORE", "theirs", "0", dumped, "REPLACE")+"GET theirs\r\n",
			"+OK\r\n"+bulk(value))
	}
	for _, other := range []string{"0", "-1", "127", "-128", "128", "-32768", "2147483647", "-2147483648", "2147483648", "", "hello",
		strings.Repeat("x", 63), strings.Repeat("y", 64), strings.Repeat("1", 20), "0123456789abcdefghijklmnopqrstuvwxyz", strings.Repeat("0123456789", 2000)} {
		if err := redis.Set(ctx, "k", other, 0).Err(); err != nil {
			t.Fatal(err)
		}
		dumped, err := redis.Dump(ctx, "k").Result()
		if err != nil {
			t.Fatal(err)
		}
		commandstest.Expect(t, s, resptest.Encode("RESTORE", "k", "0", dumped, "REPLACE")+"GET k\r\nDUMP k\r\n", "+OK\r\n"+bulk(other)+bulk(dumped))
	}
}
