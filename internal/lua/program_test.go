package lua

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/lua/native"
	"cellserver/internal/test/racetest"
)

// runBoth runs a script by the interpreter, and natively if that is possible.
func runBoth(t testing.TB, e *Engine, source string, values map[string]string, keys, argv [][]byte, resp3 bool) (want string, isNative bool) {
	t.Helper()
	s, err := e.Evaluate([]byte(source))
	if err != nil {
		return "", false
	}
	interpreted, ran := newCounterHost(values), newCounterHost(values)
	reply, err := e.Run(context.Background(), s, keys, argv, interpreted, resp3, nil)
	if s.Program == nil || err != nil {
		return string(reply), false
	}
	var m native.Machine
	got, ok := m.Run(s.Program, keys, argv, nativeHost{ran}, resp3, nil)
	if !ok {
		return string(reply), false
	}
	if string(got) != string(reply) || !maps.Equal(ran.values, interpreted.values) {
		t.Fatalf("%s\nby the interpreter %q, values %q\nnative             %q, values %q", source, reply, interpreted.values, got, ran.values)
	}
	return string(reply), true
}

// TestProgramsAreTheInterpreter compares what random programs answer natively, by the interpreter, and on a
// real server.
func TestProgramsAreTheInterpreter(t *testing.T) {
	if racetest.OmitsLong() {
		t.Skip("takes seconds")
	}
	racetest.SkipAlone(t)
	redis := startRealServer(t)
	e, ran := newEngine(Config{}), 0
	keys := byteSlices("k1", "k2")
	const programs, onServer = 3000, 1500
	argvs := [][][]byte{byteSlices("5", "60.25", "z"), byteSlices("-17", "1700000000.123456", ""), byteSlices("100", "007", "5")}
	for seed := range uint64(programs) {
		source := randomSubset(seed)
		values := map[string]string{"k1": strconv.Itoa(int(seed % 9)), "k2": "1.5"}
		if seed%3 == 0 {
			delete(values, "k1")
		}
		argv := argvs[seed%uint64(len(argvs))]
		want, isNative := runBoth(t, e, source, values, keys, argv, seed%2 == 1)
		if isNative {
			ran++
		}
		if !isNative || seed%2 == 1 || seed > onServer || strings.Contains(source, " % ") { // of large numbers, it rounds otherwise
			continue
		}
		redis.do(t, "FLUSHALL")
		for key, v := range values {
			redis.do(t, "SET", key, v)
		}
		if got := redis.do(t, "EVAL", source, "2", "k1", "k2", string(argv[0]), string(argv[1]), string(argv[2])); got != want {
			t.Fatalf("%s\nredis-server %q\nhere         %q", source, got, want)
		}
	}
	if ran < programs/3 {
		t.Errorf("only %d of %d programs ran natively: they say little", ran, programs)
	}
}

// programs are scripts, whether they can run natively, and whether they do with the arguments of the test.
var programs = []struct {
	source         string
	known, doesRun bool
}{
	{"return redis.call('get', KEYS[1])", true, true},
	{"local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('set', KEYS[2], ARGV[1]) end return {n, n * 1.5, 'x' .. n}", true, true},
	{"local v = redis.call('get', KEYS[1]) if v ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], ARGV[2]) return 1", true, true},
	{"local function add(key, n) return redis.call('incrby', key, n) end return {add(KEYS[1], 2), add(KEYS[1], ARGV[1])}", true, true},
	{"local function none() redis.call('incr', KEYS[1]) end none() none() return redis.call('get', KEYS[1])", true, true},
	{"local function none() redis.call('incr', KEYS[1]) end return none()", true, false},
	{"local x = 1 local function f() local x = 2 return x end redis.call('incr', KEYS[1]) return {x + f(), x}", true, true},
	{"local x = 1 local function f() x = 2 return 1 end redis.call('incr', KEYS[1]) return x + f()", true, false},
	{"local function f(n) if n == 0 then return 0 end return f(n - 1) end return f(tonumber(redis.call('incr', KEYS[1])))", true, false},
	{"local function f() return 1, 2 end local a, b = f() return redis.call('set', KEYS[1], b)", true, false},
	{"local a, b = 1 a, b = b, a redis.call('incr', KEYS[1]) return {b, a}", true, true},
	{"local a, a = 1, 2 redis.call('incr', KEYS[1]) a, a = 3, 4 return a", true, true},
	{"assert(tonumber(ARGV[1]) > 0, 'no') return redis.call('incrby', KEYS[1], ARGV[1])", true, true},
	{"assert(tonumber(ARGV[1]) > 10, 'no') return redis.call('incrby', KEYS[1], ARGV[1])", true, false},
	{"if ARGV[1] == 'loop' then for i = 1, 3 do redis.call('incr', KEYS[1]) end end return redis.call('incr', KEYS[1])", true, true},
	{"if ARGV[1] ~= 'loop' then for i = 1, 3 do redis.call('incr', KEYS[1]) end end return redis.call('incr', KEYS[1])", true, false},
	{"return ARGV[1] == '' and cjson.encode({}) or redis.call('incr', KEYS[1])", true, true},
	{"do local x = redis.call('set', KEYS[1], 5).ok return x end", true, true},
	{"return {redis.call('mget', KEYS[1], KEYS[2])[1], nil, 5}", true, true},
	{"redis.call('incr', KEYS[1]) return redis.error_reply('no')", true, true},
	{"redis.call('incr', KEYS[1]) return redis.error_reply(5)", true, false},
	{"redis.call('incr', KEYS[1]) return {ok = 'fine'}", true, true},
	{"redis.call('incr', KEYS[1]) return nil .. 'x'", true, false},
	{"redis.call('incr', KEYS[1]) return 0 / 0", false, false},
	{"redis.call('incr', KEYS[1]) local z = 0 return -z", true, false},
	{"return redis.call('set', KEYS[1], -0)", false, false},
	{"return redis.call('incr', KEYS[1], 'too', 'many')", true, false},
	{"return redis.pcall('unknown', KEYS[1])", true, false},
	{"local s = 'x' redis.call('incr', KEYS[1]) s = s .. s return #s", true, true},
	{"return redis.call('set', KEYS[1], {})", true, false},
	{"return redis.call('set', KEYS[1], nil)", true, false},
	{"local KEYS = {'x'} return redis.call('get', KEYS[1])", true, true},
	{"local redis = {} return redis.call('get', 'x')", false, false},
	{"local call = redis.call return call('get', KEYS[1])", false, false},
	{"return redis.call('mget', KEYS[1], unpack(ARGV))", true, true},
	{"return redis.call('mget', KEYS[1], unpack(ARGV), 'x')", false, false},
	{"return redis.call(unpack(ARGV))", false, false},
	{"KEYS[1] = 'other' return redis.call('get', KEYS[1])", false, false},
	{"x = 1 return redis.call('get', KEYS[1])", false, false},
	{"return redis.call('get', KEYS[1]):len()", false, false},
	{"local t = {} t.x = redis.call('get', KEYS[1]) return t.x", false, false},
	{"for i = 1, 2 do redis.call('incr', KEYS[1]) end", false, false},
	{"goto out ::out:: return redis.call('get', KEYS[1])", false, false},
	{"redis.setresp(3) return redis.call('get', KEYS[1])", false, false},
	{"return redis.call('get', KEYS[1]), redis.call('incr', KEYS[1])", false, false},
	{"return redis.call('get', KEYS[math.random(1)])", false, false},
	{"return tostring(1)", false, false},
}

func TestPrograms(t *testing.T) {
	e := newEngine(Config{})
	values := map[string]string{"k1": "7"}
	for _, c := range programs {
		s, err := e.Evaluate([]byte(c.source))
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		_, runs := runBoth(t, e, c.source, values, byteSlices("k1", "k2"), byteSlices("5", "60", ""), false)
		if known := s.Program != nil; known != c.known || runs != c.doesRun {
			t.Errorf("%s: compiled natively %v, want %v; runs %v, want %v", c.source, known, c.known, runs, c.doesRun)
		}
	}
}

// TestProgramsAreBounded: calls of functions multiply, and texts grow, while others wait.
func TestProgramsAreBounded(t *testing.T) {
	e := newEngine(Config{})
	source := "local function f0() redis.call('incr', KEYS[1]) return 'x' end\n"
	for i := range 12 {
		source += fmt.Sprintf("local function f%d() return f%d() .. f%d() end\n", i+1, i, i)
	}
	for _, source := range []string{
		source + "return #f12()",
		"local s = redis.call('get', KEYS[1])" + strings.Repeat(" s = s .. s", 30) + " return #s",
		strings.Repeat("redis.call('incr', KEYS[1]) ", 60),
	} {
		if _, runs := runBoth(t, e, source, map[string]string{"k1": "7"}, byteSlices("k1"), nil, false); runs {
			t.Errorf("%.100s ran natively", source)
		}
	}
	for _, operand := range []string{" .. 'x'", " + 1", " + x"} { // 64 KiB of the last once took seconds
		s, err := e.Evaluate([]byte("local x = redis.call('get', KEYS[1]) return x" + strings.Repeat(operand, 8000)))
		if err == nil && s.Program != nil {
			t.Errorf("a script of many %q was compiled natively", operand)
		}
	}
}

func FuzzProgram(f *testing.F) {
	for i, c := range programs {
		f.Add(c.source, "5", "60", i)
	}
	for seed := range uint64(20) {
		f.Add(randomSubset(seed), "-17", "0x1p3", int(seed))
	}
	e := newEngine(Config{})
	f.Fuzz(func(t *testing.T, source, a, b string, value int) {
		runBoth(t, e, source, map[string]string{"k1": strconv.Itoa(value)}, byteSlices("k1", "k2"), byteSlices(a, b, a), value%2 == 0)
	})
}

func TestProgramsAllocateNothing(t *testing.T) {
	e := newEngine(Config{})
	s, err := e.Evaluate([]byte("local n = redis.call('incrby', KEYS[1], ARGV[1]) if n > 3 then return {n, tostring(n / 7), 'k' .. n} end return n"))
	if err != nil {
		t.Fatal(err)
	}
	keys, argv := byteSlices("k1"), byteSlices("5")
	var m native.Machine
	var buf []byte
	run := func() {
		var ok bool
		if buf, ok = m.Run(s.Program, keys, argv, fixedHost{}, false, buf[:0]); !ok {
			t.Fatal("it needs the interpreter")
		}
		m.Forget()
	}
	run()
	if got := testing.AllocsPerRun(100, run); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

type fixedHost struct{}

func (fixedHost) Call(_ [][]byte, buf []byte) (reply []byte, ok bool) {
	return append(buf, ":5\r\n"...), true
}
