package session_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// interpreted makes a script one that needs the interpreter.
const interpreted = "local _ = {} _.x = 1 "

// Limiters as libraries write them.
const (
	countWithTTL = "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n"
	countAndLook = `local ttl = redis.call('pttl', KEYS[1])
if ttl < 0 then redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[1]) return {tonumber(ARGV[2]), tonumber(ARGV[1])} end
return {redis.call('incrby', KEYS[1], ARGV[2]), ttl}`
	gcra = `redis.replicate_commands()
local interval, burst, now = ARGV[1] / 1000, tonumber(ARGV[2]), redis.call('time')
now = now[1] - 1600000000 + now[2] / 1000000
local tat = math.max(tonumber(redis.call('get', KEYS[1]) or now), now)
local next = tat + interval
if next - now > interval * burst then return {0, tostring(next - now)} end
redis.call('set', KEYS[1], next, 'EX', math.ceil(next - now))
return {1, tostring(next - now)}`
	compareAndSet = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('setex', KEYS[1], ARGV[2], ARGV[1] .. 'x') return 1"
	twoWindows    = `local hits, blocked = redis.call('incr', KEYS[1]), redis.call('get', KEYS[2])
if redis.call('pttl', KEYS[1]) <= 0 then redis.call('pexpire', KEYS[1], ARGV[1]) end
if not blocked and hits > tonumber(ARGV[2]) then redis.call('set', KEYS[2], 1, 'PX', 5000) blocked = '1' end
return {hits, blocked and 1 or 0}`
)

// values writes random scripts of commands on values.
type values struct{ *rand.Rand }

func (w values) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w values) key() string { return w.pick("KEYS[1]", "KEYS[1]", "KEYS[2]") }

func (w values) number() string {
	return w.pick("1", "3", "-2", "ARGV[1]", "ARGV[2]", "n", "n + 1", "100", "0.5", "1e3", "'7'", "9223372036854775807", "'x'", "math.floor(n / 3)")
}

func (w values) call() string {
	key := w.key()
	of := func(words ...string) string { return "redis.call('" + strings.Join(words, ", ") + ")" }
	switch w.IntN(16) {
	case 0, 1:
		return of(w.pick("get'", "strlen'", "ttl'", "pttl'", "type'", "exists'", "del'", "getdel'", "persist'", "incr'", "decr'", "unlink'", "expiretime'"), key)
	case 2:
		return of("set'", key, w.number(), w.pick("'EX', 100", "'px', 2500", "'NX'", "'XX'", "'KEEPTTL'", "'GET'", "'NX', 'EX', "+w.number(), "'IFEQ', "+w.number(), "'ifne', 1", "'EXAT', 1", "'PX', 0"))
	case 3, 4, 5:
		return of("set'", key, w.number())
	case 6, 7, 8:
		return of(w.pick("incrby'", "decrby'", "INCRBY'"), key, w.number())
	case 9:
		return of(w.pick("expire'", "pexpire'"), key, w.number()) + w.pick("", "", " == 1 and "+of("expire'", key, "50", w.pick("'NX'", "'XX'", "'GT'", "'LT'")))
	case 10:
		return of(w.pick("setex'", "psetex'"), key, w.number(), w.number())
	case 11:
		return of(w.pick("setnx'", "getset'", "append'", "incrbyfloat'"), key, w.number())
	case 12:
		return of("mget'", "KEYS[1]", "KEYS[2]") + "[" + w.pick("1", "2", "3") + "]"
	case 13:
		return of("getex'", key, w.pick("'EX', 60", "'PERSIST'", "'PX', "+w.number()))
	case 14:
		return of("cl.throttle'", key, "4", "1", "10") + "[" + w.pick("1", "3") + "]"
	default:
		return of(w.pick("mset'", "rename'", "object', 'encoding'", "time'", "unknown'", "get'"), key)
	}
}

func (w values) script() string {
	var b strings.Builder
	b.WriteString("local n, v = tonumber(ARGV[1]), 0 ")
	for range 1 + w.IntN(4) {
		switch w.IntN(5) {
		case 0, 1:
			fmt.Fprintf(&b, "v = %s ", w.call())
		case 2:
			fmt.Fprintf(&b, "%s ", strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix("v = "+w.call(), "[1]"), "[2]"), "[3]"))
		case 3:
			fmt.Fprintf(&b, "if %s then v = %s end ", w.pick("v", "not v", "v == 1", "n > 3", w.call()), w.call())
		default:
			fmt.Fprintf(&b, "n = (tonumber(%s) or 2) + 1 ", w.call())
		}
	}
	return b.String() + "return " + w.pick("v", "{n, v}", "{v, "+w.call()+"}", "tostring(n)", w.call())
}

// nativeRun calls a script and reports whether that needed no interpreter.
func nativeRun(t *testing.T, r *commandstest.Harness, s *commandstest.Client, call string) (reply string, isNative bool) {
	t.Helper()
	records := r.Engine.Config.Records
	before := records.NativeScripts()
	reply = commandstest.Say(t, s, call)
	return reply, records.NativeScripts() > before
}

// runner is a server and a client of it.
type runner struct {
	*commandstest.Harness
	client *commandstest.Client
}

var scriptName = regexp.MustCompile("[0-9a-f]{40}")

// compareRuns runs a script on two servers, on one by the interpreter, and looks at all that remains.
func compareRuns(t *testing.T, a, b runner, script string, args ...string) (isNative bool) {
	t.Helper()
	var replies [2]string
	for i, r := range []runner{a, b} {
		s := r.client
		text := []string{script, interpreted + script}[i]
		commandstest.Say(t, s, resptest.Encode("SCRIPT", "LOAD", text))
		var native bool
		replies[i], native = nativeRun(t, r.Harness, s, resptest.Encode(append([]string{"EVALSHA", commandstest.SHAOf(text)}, args...)...))
		replies[i] = scriptName.ReplaceAllString(replies[i], "SHA")
		isNative = isNative || native
		if native && i == 1 {
			t.Fatalf("%s was not interpreted", text)
		}
		for _, key := range []string{"k", "l"} {
			replies[i] += commandstest.Say(t, s, "DUMP "+key+"\r\nPEXPIRETIME "+key+"\r\nTYPE "+key+"\r\n")
		}
	}
	if replies[0] != replies[1] {
		t.Fatalf("%s %q\nnative      %q\ninterpreted %q", script, args, replies[0], replies[1])
	}
	return isNative
}

// TestProgramsEqualTheInterpreter in replies, states and statistics.
func TestProgramsEqualTheInterpreter(t *testing.T) {
	if racetest.OmitsLong() {
		t.Skip("takes seconds")
	}
	first, second := commandstest.New(), commandstest.New()
	a, b := runner{first, first.Session()}, runner{second, second.Session()}
	const scripts = 2000
	natives := 0
	for seed := range uint64(scripts) {
		w := values{rand.New(rand.NewPCG(seed, 3))}
		script := w.script()
		if seed%10 == 0 {
			script = w.pick(countWithTTL, countAndLook, gcra, compareAndSet, twoWindows)
		}
		if seed%50 == 0 {
			for _, r := range []runner{a, b} {
				commandstest.Say(t, r.client, "DEL k l\r\n")
			}
		}
		args := []string{"2", "k", "l", w.pick("5", "1000", "-3"), w.pick("2", "60", "0")}
		if w.IntN(3) == 0 {
			args = append([]string{"1", "k"}, args[3:]...)
		}
		if compareRuns(t, a, b, script, args...) {
			natives++
		}
		first.Clock.Advance(int64(w.IntN(3)) * 1e9)
		second.Clock.Set(first.Clock.Now())
	}
	if natives < scripts/3 {
		t.Errorf("%d of %d scripts ran natively", natives, scripts)
	}
}

// TestLimitersRunNatively, as libraries write them, on one key and on two, with the interpreter's statistics.
func TestLimitersRunNatively(t *testing.T) {
	calls := regexp.MustCompile(`cmdstat_([a-z]+):calls=([0-9]+)`)
	first, second := commandstest.New(), commandstest.New()
	a, b := runner{first, first.Session()}, runner{second, second.Session()}
	for _, script := range []string{countWithTTL, countAndLook, gcra, compareAndSet, twoWindows} {
		for range 4 {
			if !compareRuns(t, a, b, script, "2", "k", "l", "1000", "2") {
				t.Errorf("%s was interpreted", script)
			}
		}
	}
	var counts [2]string
	for i, r := range []runner{a, b} {
		counts[i] = fmt.Sprint(calls.FindAllString(commandstest.Say(t, r.client, "INFO commandstats\r\n"), -1))
	}
	if counts[0] != counts[1] {
		t.Errorf("native %s, interpreted %s", counts[0], counts[1])
	}
}

// TestProgramsWithoutRights are refused as the interpreter refuses them.
func TestProgramsWithoutRights(t *testing.T) {
	const rules = "user u on >pw ~k ~l -@all +evalsha +script +incr +get +dump +type +pexpiretime +set"
	first, second := commandstest.NewUserHarness(t, "user default on nopass ~* +@all", rules), commandstest.NewUserHarness(t, "user default on nopass ~* +@all", rules)
	for _, r := range []*commandstest.UserHarness{first, second} {
		commandstest.Say(t, r.Session(), "SET k 5 EX 100\r\nCL.THROTTLE l 4 1 10\r\n")
	}
	a, b := runner{first.Harness, first.Login("u")}, runner{second.Harness, second.Login("u")}
	for script, native := range map[string]bool{
		"return redis.call('incr', KEYS[1])":                                        true,
		"return redis.call('incr', KEYS[1]) + redis.call('decr', KEYS[1])":          false,
		"redis.call('incr', KEYS[1]) return redis.call('get', 'm')":                 false,
		"redis.call('incr', KEYS[1]) return redis.call('set', KEYS[2], 5)":          false,
		"redis.call('set', KEYS[1], 5, 'EX', 7) return redis.call('get', KEYS[1])":  true,
		"redis.call('incr', KEYS[1]) return redis.pcall('pexpire', KEYS[1], 5).err": false,
	} {
		if got := compareRuns(t, a, b, script, "2", "k", "l"); got != native {
			t.Errorf("%s ran natively %v, want %v", script, got, native)
		}
	}
	if log := commandstest.Say(t, first.Session(), "ACL LOG\r\n"); !strings.Contains(log, "\r\nlua\r\n") || strings.Contains(log, "\r\nmulti\r\n") {
		t.Errorf("a denial is logged by a program, or not by the interpreter: %q", log)
	}
}

// TestProgramsAreOneStep: natively and by the interpreter at once, and beside EXEC, no count is lost.
func TestProgramsAreOneStep(t *testing.T) {
	const sessions, rounds = 6, 60
	r := commandstest.New(func(c *commands.Config) { c.BackgroundThreads = 4 })
	const swap = "local v = tonumber(redis.call('get', KEYS[1]) or 0) redis.call('set', KEYS[1], v + 1) return v"
	const both = "local v = tonumber(redis.call('get', KEYS[1]) or 0) redis.call('set', KEYS[1], v + 1) redis.call('set', KEYS[2], v + 1) return v"
	var all sync.WaitGroup
	for g := range sessions {
		all.Go(func() {
			s := r.Session()
			call := resptest.Encode("EVAL", []string{swap, interpreted + swap, both}[g%3], "2", "a", "b")
			if g == 3 {
				call = "MULTI\r\n" + call + "EXEC\r\n"
			}
			for range rounds {
				commandstest.Say(t, s, call)
			}
		})
	}
	all.Wait()
	want := strconv.Itoa(sessions * rounds)
	commandstest.Expect(t, r.Session(), "GET a\r\n", fmt.Sprintf("$%d\r\n%s\r\n", len(want), want))
}

// TestProgramsAllocateNothing from bytes in to bytes out.
func TestProgramsAllocateNothing(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates, too")
	}
	r := commandstest.New()
	s := r.Session()
	for _, script := range []string{countWithTTL, countAndLook, twoWindows} {
		commandstest.Say(t, s, resptest.Encode("SCRIPT", "LOAD", script))
		in := []byte(resptest.Encode("EVALSHA", commandstest.SHAOf(script), "2", "k", "k2", "100000", "1"))
		var out []byte
		run := func() { _, out, _ = s.Feed(in, out[:0]) }
		run()
		if got := testing.AllocsPerRun(200, run); got > 0 {
			t.Errorf("%s: %v allocations, reply %q", script, got, out)
		}
	}
}
