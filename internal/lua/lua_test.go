package lua

import "testing"

func TestSmoke(t *testing.T) {
	e := newEngine(t)
	for _, s := range []string{"return 1", "return {1,2,'x'}", "return KEYS[1]..ARGV[1]", "return redis.call('ping')", "x=1", "return y", "redis.x=1", "error('hi')",
		"local t={} t[1]=2 t.x=3 t[5]=1 return {t[1],t.x,#t}", "return nil+1", "local a,b=1,2 a,b=b,a return {a,b}", "local t={1,2} t[1],t[2]=t[2],t[1] return t",
		"local function f(n) if n<2 then return n end return f(n-1)+f(n-2) end return f(15)", "return select('#',...)", "while true do end", "local s='x' while true do s=s..s end"} {
		r, err := eval(e, &fakeHost{}, s, byteSlices("k"), byteSlices("a"))
		t.Logf("%s\n\t%q %v", s, r, err)
	}
}
