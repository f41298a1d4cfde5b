package lua

import (
	"context"
	"testing"
	"time"
)

// TestFunctionsLook: library functions on megabytes look at the clock often enough to be ended and to yield.
func TestFunctionsLook(t *testing.T) {
	readings := 0
	e := New(Config{Now: func() int64 { readings++; return 0 }, TimeLimit: time.Minute, MaxMemoryBytes: 1 << 30, MaxReplyBytes: 1 << 30})
	many := make([][]byte, 100_000)
	for _, tt := range []struct {
		script string
		looks  int // at least
	}{
		{"return #('x'):rep(2000000):upper()", 100},
		{"return #('x'):rep(2000000):reverse()", 100},
		{"return #('%q'):format(('x'):rep(2000000))", 100},
		{"return #('x'):rep(2000000):gsub('x','y')", 2000},
		{"return ('x'):rep(2000000):find('y',1,true)", 100},
		{"return ('x'):rep(2000000):find(('x'):rep(1000)..'y',1,true)", 100},
		{"return ('x'):find(('x'):rep(2000000))", 100},
		{"return ('x'):find('['..('x'):rep(2000000)..']')", 1000},
		{"return redis.sha1hex(('x'):rep(2000000))", 50},
		{"return #cjson.encode(('x'):rep(2000000))", 200},
		{"return #cjson.decode('\"'..('x'):rep(2000000)..'\"')", 200},
		{"return #cjson.decode('\"'..('\\\\n'):rep(1000000)..'\"')", 1000},
		{"return cjson.decode((' '):rep(2000000)..'1')", 200},
		{"return pcall(cjson.decode,('1'):rep(2000000))", 200},
		{"local t={} t[500000]=1", 100},
		{"local t={} for i=1,20000 do t['k'..i]=1 end return {set=t}", 100},
		{"for i=1,1000 do math.fmod(1e308,1e-308) end", 500},
		{"return #KEYS", 200},
	} {
		s, err := e.Evaluate([]byte(tt.script))
		if err != nil {
			t.Fatal(err)
		}
		readings = 0
		if _, err := e.Run(context.Background(), s, many, nil, &fakeHost{}, false, nil); err != nil {
			t.Errorf("%s: %v", tt.script, err)
		}
		if readings < tt.looks {
			t.Errorf("%s: %d readings of the clock, want %d or more", tt.script, readings, tt.looks)
		}
	}
}

// TestFindAcrossPieces: work in pieces gives the same results across their borders.
func TestFindAcrossPieces(t *testing.T) {
	e := patientEngine()
	for script, want := range map[string]string{
		"local s=('x'):rep(8190)..'needle'..('x'):rep(8190) return s:find('needle',1,true)":                      ":8191\r\n",
		"local s=('x'):rep(8192)..'needle' return s:find('needle',1,true)":                                       ":8193\r\n",
		"local n=('ab'):rep(5000)..'c' local s=('ab'):rep(9000)..'c'..('d'):rep(9000) return {s:find(n,1,true)}": "*2\r\n:8001\r\n:18001\r\n",
		"local n=('ab'):rep(5000)..'c' return (('ab'):rep(9000)):find(n,1,true) == nil":                          ":1\r\n",
		"return ('abc'):find('',1,true)":                                              ":1\r\n",
		"return ('abc'):find('',4,true)":                                              ":4\r\n",
		"return ('abc'):find('c',-1,true)":                                            ":3\r\n",
		"return ('x'):rep(9000):upper() == ('X'):rep(9000)":                           ":1\r\n",
		"return (('x'):rep(9000)..'y'):reverse() == 'y'..('x'):rep(9000)":             ":1\r\n",
		"return cjson.decode(cjson.encode(('x\\n'):rep(9000))) == ('x\\n'):rep(9000)": ":1\r\n",
		"return redis.sha1hex(('x'):rep(20000))":                                      "$40\r\n2cbe80a4a470a379e03546b5ed50465014bbe830\r\n",
		"return {tonumber(('0'):rep(16000)..'7'), tonumber((' '):rep(17000)..'7') == nil, tonumber(('1'):rep(17000), 2) == nil}":               "*3\r\n:7\r\n:1\r\n:1\r\n",
		"return {('aXbX'):gsub('X', 7), ('aX'):gsub('X', '%0%0')}":                                                                             "*3\r\n$4\r\na7b7\r\n$3\r\naXX\r\n:1\r\n",
		"local t = {1,2,3} t[1000000] = 'far' t[4] = 4 return {t[1000000], #t, table.maxn(t), rawget(t,1000000), unpack(t, 1000000, 1000000)}": "*5\r\n$3\r\nfar\r\n:4\r\n:1000000\r\n$3\r\nfar\r\n$3\r\nfar\r\n",
		"local t = {} t[1000000] = 'far' t[2000000] = 'away' local n = 0 for k, v in pairs(t) do n = n + k end return n":                       ":3000000\r\n",
		"local t = {} t[1000000] = 1 t[1000000] = nil return {next(t) == nil, table.concat({[600000]='a',[600001]='b'}, '-', 600000, 600001)}": "*2\r\n:1\r\n$3\r\na-b\r\n",
		"local t = {} for i = 100000, 1, -1 do t[i] = i end return #t":                                                                         ":100000\r\n",
		"local t = {} for i = 1, 200000 do t[#t+1] = i end return #t":                                                                          ":200000\r\n",
	} {
		if got, err := eval(e, &fakeHost{}, script, nil, nil); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", script, got, err, want)
		}
	}
}

// TestManyKeys: more keys than a table's array holds are refused.
func TestManyKeys(t *testing.T) {
	got, err := eval(patientEngine(), &fakeHost{}, "return #KEYS", make([][]byte, 1<<19), nil)
	if err == nil || got != "-ERR script has more than 524287 keys or arguments\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := eval(patientEngine(), &fakeHost{}, "return #KEYS", make([][]byte, 1<<19-1), nil); got != ":524287\r\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
