package lua
import "testing"
func TestX(t *testing.T) {
	e := New(Config{})
	for _, s := range []string{
	"local n=0 local function inc() n=n+1 end pcall(error,'x') inc() return n",
	"local n=0 local function inc() n=n+1 end inc() pcall(error,'x') n=5 inc() return n",
	"local t={} for i=1,3 do t[i]=tostring(math.random()) end return t",
	"local g pcall(function() local v=5 g=function() return v end error('x') end) return g()",
	"local t={} t[0]=5 local s=0 for k,v in pairs(t) do s=s+v end return s",
	} {
		r, err := eval(e, &fakeHost{}, s, byteSlices("k"), byteSlices("a"))
		t.Logf("%s\n\t%q %v", s, r, err)
	}
}
func BenchmarkTrivial(b *testing.B) {bench(b,"return 1")}
func BenchmarkCall(b *testing.B) {bench(b,"return redis.call('ping')")}
func BenchmarkThrottle(b *testing.B) {bench(b,"return redis.call('echo', KEYS[1], ARGV[1])")}
func BenchmarkLoop100(b *testing.B) {bench(b,"for i=1,100 do redis.call('ping') end return 1")}
func BenchmarkFib(b *testing.B) {bench(b,"local function f(n) if n<2 then return n end return f(n-1)+f(n-2) end return f(15)")}
func BenchmarkAppend(b *testing.B) {bench(b,"local t={} for i=1,1000 do t[#t+1]=i end return #t")}
func BenchmarkNewState(b *testing.B) { b.ReportAllocs(); for b.Loop() { newState() } }
func bench(b *testing.B, s string) {
	e := newEngine(b)
	sc, err := e.Load([]byte(s)); if err != nil { b.Fatal(err) }
	h := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte { return append(buf, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"...) }}
	k, a := byteSlices("user:1"), byteSlices("15","30","60")
	var buf []byte
	b.ReportAllocs()
	for b.Loop() { buf, err = e.Run(sc, k, a, h, false, buf[:0]); if err != nil { b.Fatal(err) } }
}
