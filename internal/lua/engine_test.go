package lua

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLoadAndLookup(t *testing.T) {
	e := newEngine(Config{})
	s, err := e.Load([]byte("return 1"))
	if err != nil {
		t.Fatal(err)
	}
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
	if s.SHA1 != sha {
		t.Errorf("SHA-1 %s", s.SHA1)
	}
	for _, text := range []string{sha, strings.ToUpper(sha)} {
		if e.Lookup([]byte(text)) != s {
			t.Errorf("%s is not known", text)
		}
	}
	for _, text := range []string{"", sha[1:], sha + "0", strings.Repeat("z", 40), strings.Repeat("0", 40)} {
		if e.Lookup([]byte(text)) != nil {
			t.Errorf("%q is known", text)
		}
	}
	e.Flush()
	if e.Lookup([]byte(sha)) != nil {
		t.Error("known after Flush")
	}
	if n, bytes := e.CacheStats(); n != 0 || bytes != 0 {
		t.Errorf("%d scripts, %d bytes after Flush", n, bytes)
	}
}

func TestCompileErrors(t *testing.T) {
	e := newEngine(Config{MaxSourceBytes: 1000})
	for source, want := range map[string]string{
		"return (":                          "user_script:1: unexpected symbol near '<eof>'",
		"\n\nx = = 2":                       "user_script:3: unexpected symbol near '='",
		"return 'a":                         "user_script:1: unfinished string near '<eof>'",
		"return 1 2":                        "user_script:1: unexpected symbol near '2'",
		"break":                             "user_script:1: no loop to break",
		"local function f() return ... end": "user_script:1: cannot use '...' outside a vararg function",
		"return " + strings.Repeat("{", 600) + strings.Repeat("}", 300): "user_script:1: unexpected symbol near '<eof>'",
		"x=1\r\n-ERR forged\r\n": "user_script:3: syntax error near '<eof>'",
		"return '\r\n":           "user_script:2: unfinished string near '\\r\\n'",
	} {
		_, err := e.Load([]byte(source))
		if err == nil || !strings.HasPrefix(err.Error(), compileError+strings.SplitN(want, " near", 2)[0]) {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%q: an error of several lines: %q", source, err)
		}
	}
	if _, err := e.Load(make([]byte, 1001)); err == nil || err.Error() != "ERR script is longer than 1000 bytes" {
		t.Errorf("a long script: %v", err)
	}
}

// TestCompilingIsBounded bounds the allocation of the hardest sources of the greatest length.
func TestCompilingIsBounded(t *testing.T) {
	const maxBytes = 64 << 20
	e := newEngine(Config{})
	for _, piece := range []string{
		"(", "{", "#", "not ", "a..", "do ", "function x() ", "local function x() end ", "a+", "x=1 ", "if x then ", "x^", "x and ",
		"a[1]=2;", "a.b=c..d;", "goto a ", "f{}", "f(", "for i=1,2 do ", "- ", "::a::", "'", "[[", "--[[", "function() return ",
	} {
		for _, before := range []string{"", "return "} {
			source := before + strings.Repeat(piece, 64<<10/len(piece)-4)
			var was, is runtime.MemStats
			runtime.ReadMemStats(&was)
			_, _ = e.Load([]byte(source))
			runtime.ReadMemStats(&is)
			if bytes := is.TotalAlloc - was.TotalAlloc; bytes > maxBytes {
				t.Errorf("%s%s...: allocated %d bytes", before, piece, bytes)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	e := newEngine(Config{})
	s, err := e.Load([]byte("#!lua flags=no-writes,allow-oom,,allow-stale flags=no-cluster,allow-cross-slot-keys\nreturn 1"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Flags{true, true}); s.Flags != want {
		t.Errorf("flags %+v", s.Flags)
	}
	if s, _ = e.Load([]byte("return 1")); s.Flags != (Flags{}) {
		t.Errorf("flags %+v without a line of them", s.Flags)
	}
}

func TestKill(t *testing.T) {
	e := newEngine(Config{TimeLimit: time.Minute})
	if err := e.Kill(); !errors.Is(err, NotBusyError{}) {
		t.Errorf("nothing runs: %v", err)
	}
	running := make(chan struct{})
	host := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte {
		close(running)
		return append(buf, "+OK\r\n"...)
	}}
	var wg sync.WaitGroup
	wg.Go(func() {
		reply, err := eval(e, host, "redis.call('x') while true do pcall(function() while true do end end) end", nil, nil)
		var end *EndError
		if !errors.As(err, &end) || !regexp.MustCompile(`^-ERR Script killed by user with SCRIPT KILL\.\.\. script: [0-9a-f]{40}, on @user_script:1\.\r\n$`).MatchString(reply) {
			t.Errorf("%q, %v", reply, err)
		}
	})
	<-running
	if err := e.Kill(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if reply, err := eval(e, host, "return 1", nil, nil); reply != ":1\r\n" || err != nil {
		t.Errorf("after the kill: %q, %v", reply, err)
	}
}

// TestCancel ends a run whose context is cancelled, whatever the script catches.
func TestCancel(t *testing.T) {
	e := newEngine(Config{TimeLimit: time.Minute})
	ctx, cancel := context.WithCancel(context.Background())
	host := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte {
		cancel()
		return append(buf, "+OK\r\n"...)
	}}
	s, err := e.Evaluate([]byte("redis.call('x') while true do pcall(function() while true do end end) end"))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := e.Run(ctx, s, nil, nil, host, false, nil)
	var end *EndError
	if !errors.As(err, &end) || end.Reason != "ERR script was ended: its client has gone, or the server is shutting down" {
		t.Errorf("error %v", err)
	}
	if want := "-ERR script was ended: its client has gone, or the server is shutting down script: " + s.SHA1 + ", on @user_script:1.\r\n"; string(reply) != want {
		t.Errorf("reply %q, want %q", reply, want)
	}
	if reply, err := eval(e, host, "return 1", nil, nil); reply != ":1\r\n" || err != nil {
		t.Errorf("after the end: %q, %v", reply, err)
	}
}

// TestScriptsYield: endless scripts share one processor with another goroutine.
func TestScriptsYield(t *testing.T) {
	const limit, leastTurns = 50 * time.Millisecond, 30 // of 1,000, or of 5 if only Go's scheduler took turns
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	e := newEngine(Config{TimeLimit: limit})
	for _, source := range []string{
		"while true do end",
		"while true do pcall(function() while true do error('x') end end) end",
		"local t = {} while true do t[1] = {string.rep('x', 100)} end",
		"while true do redis.call('x') end",
	} {
		host := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte { return append(buf, "+OK\r\n"...) }}
		var done atomic.Bool
		var wg sync.WaitGroup
		turns := 0
		wg.Go(func() {
			for ; !done.Load(); turns++ {
				runtime.Gosched()
			}
		})
		_, err := eval(e, host, source, nil, nil)
		done.Store(true)
		wg.Wait()
		if end := (*EndError)(nil); !errors.As(err, &end) {
			t.Errorf("%s: %v", source, err)
		}
		t.Logf("%s: %d turns", source, turns)
		if turns < leastTurns {
			t.Errorf("%s: somebody else had %d turns in %s", source, turns, limit)
		}
	}
}

// TestNothingLeaks: nothing that a script tries to leave is seen by the next in the same interpreter.
func TestNothingLeaks(t *testing.T) {
	e := newEngine(Config{})
	for _, source := range []string{
		"x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "string.x = 1", "getmetatable('').x = 1", "getmetatable('').__index.x = 1",
		"setmetatable(_G, {__index=function() return 1 end})", "getmetatable(_G).__index = {x=1}", "getmetatable(_G).x = 1",
		"setmetatable(string, {__index={x=1}})", "KEYS.x = 1 ARGV.x = 1", "table.insert(table, 1)", "redis.call = nil",
		"redis.setresp(3)", "math.randomseed(7)", "cjson.null = 5", "rawset(string, 'x', 1)", "_G._G = {}", "KEYS = nil",
		"setmetatable({}, {__newindex=_G}).x = 1", "setmetatable({}, {__newindex=string}).x = 1", "for k in pairs(_G) do _G[k] = nil end",
		"local t = setmetatable({}, getmetatable(_G)) t.x = 1", "for k, v in pairs(redis) do redis[k] = 1 end", "error(setmetatable({}, {__index=_G}))",
		"local f = function() return x end f()", "pcall(function() x = 1 end)", "table.sort(_G) table.remove(string)",
		"string.format = nil", "function string.x() end", "function x() end", "local s = 'a' s.x = 1", "unpack = nil", "_VERSION = 1",
		"setmetatable(getmetatable(''), {})", "getmetatable('').__concat = 1", "return getmetatable(getmetatable(''))",
		"local m = getmetatable(_G) m.__index = 5 setmetatable({}, m)", "local function f() f = 1 return f end f()",
	} {
		_, err := eval(e, &fakeHost{}, source, byteSlices("secret"), byteSlices("hidden"))
		if err != nil {
			t.Errorf("%s: %v", source, err)
		}
		const look = `
			local found = {}
			for name, t in pairs({_G=_G, string=string, table=table, redis=redis, KEYS=KEYS, ARGV=ARGV, meta=getmetatable('')}) do
				if rawget(t, 'x') or rawget(t, 1) then found[#found+1] = name end
			end
			if pcall(function() return x end) then found[#found+1] = 'x' end
			if #KEYS + #ARGV > 0 then found[#found+1] = 'arguments' end
			if ('').x or ('%d'):format(1) ~= '1' or type(redis.call) ~= 'function' or type(unpack) ~= 'function' then found[#found+1] = 'library' end
			local first = math.random()
			math.randomseed(7)
			if math.random() == first then found[#found+1] = 'seed' end
			if redis.call('get', 'none') ~= false then found[#found+1] = 'protocol' end
			if _VERSION ~= 'Lua 5.1' or type(cjson.null) ~= 'userdata' then found[#found+1] = 'constants' end
			return found`
		if reply, err := eval(e, &fakeHost{}, look, nil, nil); reply != "*0\r\n" || err != nil {
			t.Errorf("%s left %q, %v", source, reply, err)
		}
	}
}

// TestRandom: runs draw different numbers, and Redis's from a seed.
func TestRandom(t *testing.T) {
	e := newEngine(Config{})
	seen := map[string]bool{}
	for range 20 {
		reply, _ := eval(e, &fakeHost{}, "return tostring(math.random(1, 2147483647))", nil, nil)
		seen[reply] = true
	}
	if len(seen) < 19 {
		t.Errorf("20 runs drew %d different numbers: %v", len(seen), seen)
	}
	for range 2 {
		if reply, _ := eval(e, &fakeHost{}, "math.randomseed(0) return tostring(math.random())", nil, nil); reply != "$16\r\n0.17082803611217\r\n" {
			t.Errorf("drew %q from a seed", reply)
		}
	}
}

// TestResults: a function may have as many as in Redis.
func TestResults(t *testing.T) {
	e := patientEngine()
	for script, want := range map[string]string{
		"return select('#', unpack({}, 1, 7997))":              ":7997\r\n",
		"return select('#', unpack({}, 1, 7998))":              "-ERR user_script:1: too many results to unpack",
		"return select('#', (('x'):rep(7997)):byte(1, -1))":    ":7997\r\n",
		"return (('x'):rep(7998)):byte(1, -1)":                 "-ERR user_script:1: string slice too long",
		"return {redis.acl_check_cmd('get', 'a')}":             "*1\r\n:1\r\n",
		"return {redis.acl_check_cmd('set', 'a')}":             "*1\r\n$-1\r\n",
		"return pcall(redis.acl_check_cmd, 'nosuch') == false": ":1\r\n",
	} {
		if got, _ := eval(e, &fakeHost{}, script, nil, nil); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

func TestAbsent(t *testing.T) {
	e := newEngine(Config{})
	for _, name := range []string{
		"io", "debug", "package", "require", "module", "dofile", "loadfile", "load", "loadstring", "print", "getfenv", "setfenv",
		"newproxy", "channel", "struct", "cmsgpack", "_printregs", "_GOPHER_LUA_VERSION", "(0)", "(1)",
	} {
		source := "local ok, e = pcall(function() return _G['" + name + "'] end) return {tostring(ok), tostring(rawget(_G, '" + name + "'))}"
		if reply, _ := eval(e, &fakeHost{}, source, nil, nil); reply != "*2\r\n$5\r\nfalse\r\n$3\r\nnil\r\n" {
			t.Errorf("%s: %q", name, reply)
		}
	}
	for source, want := range map[string]string{
		"local n = 0 for k in pairs(os) do n = n + 1 end return n": ":1\r\n",
		"return type(os.clock())":                                  "$6\r\nnumber\r\n",
		"return type(string.dump)":                                 "$3\r\nnil\r\n",
		"return pcall(coroutine.create, print1)":                   "-ERR user_script:1: Script attempted",
		"return coroutine.wrap(function() end)":                    "-ERR user_script:1: coroutines are not supported by this server script: ",
	} {
		if reply, _ := eval(e, &fakeHost{}, source, nil, nil); !strings.HasPrefix(reply, want) {
			t.Errorf("%s: %q, want %q", source, reply, want)
		}
	}
}

func TestLog(t *testing.T) {
	h := &fakeHost{}
	if reply, err := eval(newEngine(Config{}), h, "redis.log(redis.LOG_WARNING, 'a', 5, 'b') redis.log(0, 'c')", nil, nil); err != nil {
		t.Error(reply, err)
	}
	if got := strings.Join(h.log, "|"); got != "3 a 5 b|0 c" {
		t.Errorf("log %q", got)
	}
	const long = "redis.log(3, string.rep('x', 1024)) redis.log(3, string.rep('x', 1e6), 'a') redis.log(3, string.rep('中', 1000)) redis.log(3, string.rep('\\128', 1e5))"
	h = &fakeHost{}
	if reply, err := eval(newEngine(Config{}), h, long, nil, nil); err != nil {
		t.Error(reply, err)
	}
	x := "3 " + strings.Repeat("x", 1024)
	if got, want := strings.Join(h.log, "|"), x+"|"+x+"...|3 "+strings.Repeat("中", 341)+"...|3 "+strings.Repeat("\x80", 1020)+"..."; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

func TestHostReplies(t *testing.T) {
	e := newEngine(Config{})
	for _, c := range []struct{ answer, source, want string }{
		{"%1\r\n+k\r\n:1\r\n", "local m = redis.call('x').map for k, v in pairs(m) do return {k.ok, v} end", "*2\r\n$1\r\nk\r\n:1\r\n"},
		{"~2\r\n$1\r\na\r\n$1\r\nb\r\n", "local s = redis.call('x').set return {tostring(s.a), tostring(s.b), tostring(s.c)}", "*3\r\n$4\r\ntrue\r\n$4\r\ntrue\r\n$3\r\nnil\r\n"},
		{",3.5\r\n", "return tostring(redis.call('x').double)", "$3\r\n3.5\r\n"},
		{"#t\r\n", "return tostring(redis.call('x'))", "$4\r\ntrue\r\n"},
		{"_\r\n", "return tostring(redis.call('x'))", "$3\r\nnil\r\n"},
		{"(123\r\n", "return redis.call('x').big_number", "$3\r\n123\r\n"},
		{"=7\r\ntxt:abc\r\n", "local v = redis.call('x').verbatim_string return {v.format, v.string}", "*2\r\n$3\r\ntxt\r\n$3\r\nabc\r\n"},
		{"*3\r\n$-1\r\n*-1\r\n*1\r\n:5\r\n", "local r = redis.call('x') return {tostring(r[1]), tostring(r[2]), r[3][1]}", "*3\r\n$5\r\nfalse\r\n$5\r\nfalse\r\n:5\r\n"},
		{"", "return redis.pcall('x')", "-ERR the command gave no reply\r\n"},
		{"?\r\n", "return redis.pcall('x')", "-ERR the command gave a reply that is none\r\n"},
		{"$5\r\nabc", "return redis.pcall('x')", "-ERR the command gave a reply that is none\r\n"},
		{"*2\r\n:1\r\n", "return redis.pcall('x')", "-ERR the command gave a reply that is none\r\n"},
		{"*999999999\r\n", "return redis.pcall('x')", "-ERR the command gave a reply that is none\r\n"},
		{"*1\r\n-ERR inner\r\n", "return redis.call('x')[1].err", "$9\r\nERR inner\r\n"},
	} {
		host := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte { return append(buf, c.answer...) }}
		if got, err := eval(e, host, c.source, nil, nil); got != c.want || err != nil {
			t.Errorf("answer %q: got %q, %v, want %q", c.answer, got, err, c.want)
		}
	}
}

// TestNoForgedReplies: line ends in a script's text never end a reply's line.
func TestNoForgedReplies(t *testing.T) {
	e := newEngine(Config{})
	for _, source := range []string{
		"error('a\\r\\n+OK')", "error({err='a\\r\\n+OK'})", "return {err='a\\r\\n+OK'}", "return {ok='a\\r\\n+OK'}", "return {big_number='1\\r\\n+OK'}",
		"return redis.error_reply('a\\r\\n+OK')", "return redis.status_reply('a\\r\\n+OK')", "return _G['a\\r\\n+OK']",
		"return (nil)['a\\r\\n+OK']", "return redis.call('nope\\r\\n+OK')", "return ('%\\r\\n+OK'):format(1)", "return cjson.decode('\\r\\n+OK')",
		"return {verbatim_string={format='\\r\\n+', string='x'}}", "('x'):rep('\\r\\n')", "return ('x'):find('[\\r\\n')",
	} {
		s, err := e.Evaluate([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := e.Run(context.Background(), s, nil, nil, &fakeHost{}, true, nil)
		lines := strings.Count(string(reply), "\r\n")
		if err != nil || lines != 1 && reply[0] != '=' || strings.Count(string(reply), "\n") != lines || lines > 2 {
			t.Errorf("%s: %q, %v", source, reply, err)
		}
	}
}

func TestConcurrentRuns(t *testing.T) {
	e := newEngine(Config{TimeLimit: time.Minute})
	s, err := e.Load([]byte("local s = 0 for i = 1, 200 do s = s + i end return {KEYS[1], s, redis.call('echo', ARGV[1])}"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			name := fmt.Sprint(worker)
			want := "*3\r\n$1\r\n" + name + "\r\n:20100\r\n$1\r\n" + name + "\r\n"
			for range 200 {
				reply, err := e.Run(context.Background(), s, byteSlices(name), byteSlices(name), &fakeHost{}, false, nil)
				if string(reply) != want || err != nil {
					t.Errorf("got %q, %v", reply, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestRunAppends(t *testing.T) {
	e := newEngine(Config{})
	for _, source := range []string{"return 1", "error('x')", "while true do end"} {
		s, _ := e.Evaluate([]byte(source))
		reply, _ := e.Run(context.Background(), s, nil, nil, &fakeHost{}, false, []byte("before"))
		if !strings.HasPrefix(string(reply), "before") || len(reply) < len("before")+4 {
			t.Errorf("%s: %q", source, reply)
		}
	}
}

// TestAllowance: runs share it, and the error that ends the last one names all of it.
func TestAllowance(t *testing.T) {
	var nowNs int64
	e := New(Config{Now: func() int64 { nowNs += int64(time.Millisecond); return nowNs }, TimeLimit: 50 * time.Millisecond})
	s, err := e.Load([]byte("for i = 1, 8000 do end return 1"))
	if err != nil {
		t.Fatal(err)
	}
	a := e.Allowance()
	for runs := 0; ; runs++ {
		before := a.Spent
		reply, err := e.RunWithin(context.Background(), &a, s, nil, nil, &fakeHost{}, false, nil)
		if err == nil && string(reply) == ":1\r\n" && a.Spent > before && runs < 50 {
			continue
		}
		if runs < 2 || runs >= 50 || a.Left() > 0 || !strings.Contains(string(reply), "-ERR script ran longer than 50 ms and was ended; see --lua-time-limit") {
			t.Errorf("run %d: %q, %v, and %s are left", runs, reply, err, a.Left())
		}
		break
	}
	held := Allowance{Limit: 5 * time.Millisecond, Held: true, Hint: "be quick"}
	if reply, _ := e.RunWithin(context.Background(), &held, s, nil, nil, &fakeHost{}, false, nil); !strings.Contains(string(reply), "longer than 5 ms and was ended; be quick") {
		t.Errorf("got %q", reply)
	}
}
