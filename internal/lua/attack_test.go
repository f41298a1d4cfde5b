package lua

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// attacks exceed a bound, or fail with an error that a script may catch.
var attacks = []struct{ name, source, want string }{
	{"loop", "while true do end", "bound"},
	{"goto", "::a:: goto a", "bound"},
	{"loop in pcall in loop", "while true do pcall(function() while true do end end) end", "bound"},
	{"nested pcalls", "local function f() pcall(f) while true do end end f()", "bound"},
	{"xpcall handler loops", "while true do xpcall(function() error('x') end, function() while true do end end) end", "bound"},
	{"pcall of errors", "while true do pcall(error) end", "bound"},
	{"recursion", "local function f() return 1 + f() end while true do pcall(f) end", "bound"},
	{"recursion by pcall", "local function f() return pcall(f) end while true do f() end", "bound"},
	{"recursion by index", "local t t=setmetatable({},{__index=function(_,k) return t[k+1] end}) while true do pcall(function() return t[1] end) end", "bound"},
	{"recursion by tostring", "local t t=setmetatable({},{__tostring=function() return tostring(t) end}) while true do pcall(tostring,t) end", "bound"},
	{"recursion by concat", "local t t=setmetatable({},{__concat=function(a) return a..'x' end}) while true do pcall(function() return t..'y' end) end", "bound"},
	{"recursion by call", "local t=setmetatable({},{}) getmetatable(t).__call=t while true do pcall(t) end", "bound"},
	{"index chain", "local t={} for i=1,90 do t=setmetatable({},{__index=t}) end while true do local x=t.x end", "bound"},
	{"newindex loop", "local a,b={}, {} setmetatable(a,{__newindex=b}) setmetatable(b,{__newindex=a}) while true do pcall(function() a.x=1 end) end", "bound"},
	{"gsub callback", "('x'):rep(1000):gsub('x',function() while true do end end)", "bound"},
	{"gsub callbacks", "while true do ('x'):rep(1000):gsub('x',function() return 'y' end) end", "bound"},
	{"gmatch", "for _ in ('x'):rep(1e6):gmatch('x') do for _ in ('x'):rep(1e6):gmatch('.') do end end", "bound"},
	{"sort comparator", "local t={} for i=1,1000 do t[i]=i end table.sort(t,function() while true do end end)", "bound"},
	{"sort much", "local t={} for i=1,1e5 do t[i]=-i end while true do table.sort(t,function(a,b) return a<b end) end", "bound"},
	{"sort inconsistently", "local t={} for i=1,1000 do t[i]=i end while true do table.sort(t,function(a,b) return true end) end", "bound"},
	{"sort long strings", "local t={} local s=('x'):rep(1e5) for i=1,30 do t[i]=s..i end while true do table.sort(t) end", "bound"},
	{"exponential pattern", "('a'):rep(30):find(('a?'):rep(30)..('a'):rep(30)..'b')", "bound"},
	{"polynomial pattern", "('a'):rep(1e5):find('.-.-.-.-b')", "bound"},
	{"greedy pattern", "('a'):rep(1e5):find('a*a*a*a*b')", "bound"},
	{"back references", "('a'):rep(1e5):find('(a*)(a*)%1%2b')", "bound"},
	{"balanced pattern", "while true do ('('):rep(1e4):find('%b()') end", "bound"},
	{"long set", "('b'):rep(1e5):find('['..('a'):rep(1e5)..']')", "bound"},
	{"gsub quadratic", "local s=('a'):rep(1e5) while true do s:gsub('.-b','') end", "bound"},
	{"plain find", "local s=('a'):rep(2e6) while true do s:find('ab',1,true) end", "bound"},
	{"lower", "local s=('a'):rep(1e6) while true do s:lower() end", "bound"},
	{"rep", "return ('x'):rep(1e9)", "bound"},
	{"rep overflow", "return ('xxxxxxxxxxxxxxxx'):rep(2^60)", "bound"},
	{"rep times rep", "return ('x'):rep(1e6):rep(1e6)", "bound"},
	{"doubling", "local s='x' while true do s=s..s end", "bound"},
	{"doubling by format", "local s='x' while true do s=('%s%s'):format(s,s) end", "bound"},
	{"doubling by gsub", "local s='xx' while true do s=s:gsub('x','xx') end", "bound"},
	{"doubling by gsub captures", "local s=('x'):rep(1000) while true do s=s:gsub('.*','%0%0%0%0') end", "bound"},
	{"doubling by concat", "local s='x' while true do s=table.concat({s,s,s}) end", "bound"},
	{"doubling by separator", "local s='x' while true do s=table.concat({'','','',''},s) end", "bound"},
	{"doubling by json", "local s='\\\\' while true do s=cjson.encode(s) end", "bound"},
	{"appending", "local s='' while true do s=s..'0123456789' end", "bound"},
	{"concat chain", "local s=('x'):rep(1e6) return s..s..s..s..s..s..s..s..s..s..s..s..s..s..s..s..s..s..s", "bound"},
	{"array", "local t={} while true do t[#t+1]=1 end", "bound"},
	{"array of numbers", "local t={} local i=0.5 while true do i=i+1 t[#t+1]=i end", "bound"},
	{"insert", "local t={} while true do table.insert(t,1) end", "bound"},
	{"insert in front", "local t={} while true do table.insert(t,1,1) end", "bound"},
	{"map", "local t={} local i=0 while true do i=i+1 t['k'..i]=i end", "bound"},
	{"keys that go away", "local t={} local i=0 while true do i=i+1 t['k'..i]=i t['k'..i]=nil end", "bound"},
	{"next over removed keys", "local t={} for i=1,3e4 do t['k'..i]=1 end for i=1,3e4 do t['k'..i]=nil end while true do next(t) end", "bound"},
	{"length over nils", "local t={} for i=1,2e5 do t[i]=1 end for i=2,2e5 do t[i]=nil end while true do local x=#t end", "bound"},
	{"a large index", "local t={} t[60000000]=1", "reply"},
	{"an index that is not large enough", "while true do local t={} t[500000]=1 end", "bound"},
	{"many large indices", "local t={} local i=1e6 while true do i=i+7 t[i]=1 end", "bound"},
	{"a large index of nil", "local t={} while true do t[60000000]=nil end", "bound"},
	{"large indices", "while true do local t={} t[60000]=1 end", "bound"},
	{"a large index by rawset", "rawset({},6e7,1)", "reply"},
	{"a large index by insert", "table.insert({},6e7,1)", "reply"},
	{"a large index in a constructor", "return {[60000000]=1}", "reply"},
	{"a large index by newindex", "local u={} local t=setmetatable({},{__newindex=u}) t[6e7]=1", "reply"},
	{"tables", "local t while true do t={t} end", "bound"},
	{"empty tables", "local t={} while true do t[#t+1]={} end", "bound"},
	{"tables of a field", "local t={} while true do t={x=t} end", "bound"},
	{"tables of varargs", "local a={} local function f(...) while true do a[#a+1]={...} end end f(unpack({},1,7000))", "bound"},
	{"tables of unpack", "local a={} while true do a[#a+1]={unpack({},1,7000)} end", "bound"},
	{"closures", "local f while true do local g=f f=function() return g end end", "bound"},
	{"local functions", "local f while true do local g=f local function h() return g end f=h end", "bound"},
	{"many arguments", "local function f(...) return f(1,2,3,4,5,6,7,8,...) end f()", "bound"},
	{"many arguments, deep", "local function f(...) return 1+f(1,2,3,4,5,6,7,8,9,10,...) end f(unpack({},1,7000))", "bound"},
	{"many results", "local function f(n) if n==0 then return unpack({},1,7000) end return 1,2,3,4,5,6,7,8,9,10,f(n-1) end while true do local t={f(300)} end", "bound"},
	{"many results by pcall", "local function f(...) return pcall(f,1,2,3,...) end f(unpack({},1,7000))", "bound"},
	{"unpack", "while true do select('#',unpack({},1,7000)) end", "bound"},
	{"unpack much", "return unpack({},1,1e8)", "error"},
	{"bytes", "local s=('x'):rep(7000) while true do s:byte(1,-1) end", "bound"},
	{"format width", "return ('%99999d'):format(1)", "error"},
	{"format many", "local f=('%99d'):rep(200) while true do f:format(unpack({},1,200)) end", "error"},
	{"format loops", "local t={} for i=1,150 do t[i]=1 end local f=('%99d'):rep(150) while true do f:format(unpack(t)) end", "bound"},
	{"compare long strings", "local a,b=('x'):rep(5e6)..'a',('x'):rep(5e6)..'a' while true do local x=a<b local y=a==b end", "bound"},
	{"long keys", "local a=('x'):rep(5e6) local t={} t[a]=1 while true do local x=t[a] end", "bound"},
	{"errors with long keys", "local a={} local k=('x'):rep(1e6) while true do local _,e=pcall(function() return (nil)[k] end) a[#a+1]=e end", "bound"},
	{"long error messages", "local a={} local k=('x'):rep(1e6) while true do local _,e=pcall(error,k..'y') a[#a+1]=e end", "bound"},
	{"json nesting", "return cjson.decode(('['):rep(1e6))", "error"},
	{"json numbers", "return cjson.decode('['..('1,'):rep(1e6)..'1]')", "bound"},
	{"json strings", "local s='['..('\"x\",'):rep(1e5)..'1]' while true do cjson.decode(s) end", "bound"},
	{"json of a graph", "local t={1} for i=1,60 do t={t,t} end return cjson.encode(t)", "bound"},
	{"reply of a graph", "local t={1} for i=1,60 do t={t,t} end return t", "bound"},
	{"reply that is cyclic", "local t={} t[1]=t return t", "error"},
	{"reply of strings", "local s=('x'):rep(1e6) local t={} for i=1,100 do t[i]=s end return t", "bound"},
	{"tonumber of a long string", "local s=('1'):rep(5e6) while true do local x=tonumber(s) end", "bound"},
	{"arithmetic on a long string", "local s=('1'):rep(5e6) while true do local x=s+1 end", "error"},
	{"sha1", "local s=('1'):rep(2e6) while true do redis.sha1hex(s) end", "bound"},
	{"log", "local s=('1'):rep(1e6) while true do redis.log(1,s,s,s,s) end", "bound"},
	{"call", "while true do redis.call('ping') end", "bound"},
	{"call with much", "local s=('1'):rep(1e6) while true do redis.call('ping',s,s,s,s) end", "bound"},
	{"echo", "local s=('1'):rep(1e6) while true do s=redis.call('echo',s..s) end", "bound"},
	{"ipairs", "local t={} for i=1,1e5 do t[i]=i end while true do for _ in ipairs(t) do end end", "bound"},
	{"foreach", "local t={1,2} while true do table.foreach(t,function() end) end", "bound"},
	{"maxn", "local t={} for i=1,1e5 do t[i]=i end while true do table.maxn(t) end", "bound"},
	{"remove in front", "local t={} for i=1,2e5 do t[i]=i end while true do table.remove(t,1) end", "bound"},
}

// TestAttacks: each ends as its table says, and allocates no more than its bound allows.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const limit, maxBytes = 25 * time.Millisecond, 16 << 20
	const allocated = 5 * maxBytes
	bounded, patient := newEngine(Config{TimeLimit: limit, MaxMemoryBytes: maxBytes}), newEngine(Config{TimeLimit: time.Minute, MaxMemoryBytes: maxBytes})
	for _, a := range attacks {
		e := bounded
		if a.want != "bound" { // which ends by itself, on a busy machine later
			e = patient
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		reply, err := eval(e, &fakeHost{}, a.source, nil, nil)
		runtime.ReadMemStats(&after)
		bytes := after.TotalAlloc - before.TotalAlloc
		t.Logf("%-32s %4d MiB %.100q", a.name, bytes>>20, reply)
		if bytes > allocated {
			t.Errorf("%s allocated %d bytes", a.name, bytes)
		}
		if got := verdict(reply, err); got != a.want {
			t.Errorf("%s: ended by %s, want %s: %.200q", a.name, got, a.want, reply)
		}
		if reply, err := eval(e, &fakeHost{}, "return 'fine'", nil, nil); reply != "$4\r\nfine\r\n" || err != nil {
			t.Errorf("%s: the next script got %q, %v", a.name, reply, err)
		}
	}
}

func verdict(reply string, err error) string {
	switch {
	case err != nil && (strings.Contains(reply, "script ran longer than 25 ms and was ended; see --lua-time-limit") ||
		strings.Contains(reply, "bytes of memory and was ended") || strings.Contains(reply, "reply is longer than")):
		return "bound"
	case err != nil:
		return "internal error"
	case strings.HasPrefix(reply, "-"):
		return "error"
	}
	return "reply"
}
