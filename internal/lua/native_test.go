package lua

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/lua/native"
	"cellserver/internal/resp"
)

var nativeScripts = []struct {
	source string
	native bool
}{
	{"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", true},
	{"return redis.call(\"CL.THROTTLE\",KEYS[1],ARGV[1],ARGV[2],ARGV[3],ARGV[4]);", true},
	{"return redis.call([[Cl.Throttle]], KEYS[1], 15, 30, 60, 1)", true},
	{"return redis.call('cl.throttle', 'k', '15', '30', '60')", true},
	{"return redis.call('cl.throttle', KEYS[1], -1, 0x10, 1e3, 0.5)", true},
	{"return redis.call('cl.throttle', KEYS[1], unpack(ARGV))", true},
	{"return redis.call('cl.throttle', KEYS[1], 15, unpack(ARGV))", true},
	{"return redis.call('cl.throttle', KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))", true},
	{"return redis.call('cl.throttle', tostring(KEYS[1]), tostring(ARGV[1]), ARGV[2], ARGV[3])", true},
	{"return redis.call('cl.throttle', KEYS[1], tonumber('15'), 30, 60)", true},
	{"return redis.pcall('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", true},
	{"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[1]", true},
	{"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[5]", true},
	{"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[6]", true},
	{"return redis.pcall('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])[1]", true},
	{"local r = redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3]) return r", true},
	{"local r = redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])\nreturn r[4]", true},
	{"local key = KEYS[1]\nlocal burst, rate = ARGV[1], tonumber(ARGV[2])\n\nreturn redis.call('CL.THROTTLE', key, burst, rate, ARGV[3])", true},
	{"-- throttle\nreturn --[[ x ]] redis.call(\n 'cl.throttle',\n KEYS[1], ARGV[1],\n ARGV[2], ARGV[3])\n", true},
	{"#!lua flags=allow-oom\nreturn redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", true},
	{"return (redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3]))", true},
	{"return redis.call('cl.throttle')", true},
	{"return redis['call']('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", true},
	{"return redis.call('cl.bucket', 'take', KEYS[1], ARGV[1])", true},
	{"return redis.call('CL.Bucket', 'Take', KEYS[1], 5)[1]", true},
	{"return redis.call('cl.throttle', KEYS[1], tonumber(ARGV[1], 10), ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', KEYS[1]), 1", false},
	{"local a, b = ARGV[1], ARGV[2] a, b = b, a return redis.call('cl.throttle', KEYS[1], a, b, 30)", false},
	{"return redis.call('cl.throttle', KEYS[1], 15, 30, 30 * 2)", false},

	{"return redis.call('cl.bucket', 'len', KEYS[1])", false},
	{"return redis.call('cl.bucket')", false},
	{"return redis.call('cl.bucket', ARGV[1], KEYS[1], 5)", false},
	{"return redis.call('get', KEYS[1])", false},
	{"redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])", false},
	{"return {redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])}", false},
	{"return redis.call('cl.throttle', KEYS[1], unpack(ARGV), 5)", false},
	{"local r = redis.call('cl.throttle', KEYS[1]) r = KEYS[1] return r", false},
	{"redis.call('cl.throttle', KEYS[1]) return redis.call('cl.throttle', KEYS[1])", false},
	{"if KEYS[2] then redis.call('set', KEYS[1], 1) end return redis.call('cl.throttle', KEYS[1])", false},
	{"do local x = KEYS[1] end return redis.call('cl.throttle', KEYS[1])", false},
	{"return redis.call('cl.throttle', KEYS[1], (unpack(ARGV)))", false},
	{"return redis.call('cl.throttle', KEYS[1], ARGV[1] + 1, ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', 'a' .. KEYS[1], ARGV[1], ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', KEYS[1], tostring(15), ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', KEYS[#KEYS], ARGV[1], ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', KEYS[0], ARGV[1], ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', KEYS[1.5], ARGV[1], ARGV[2], ARGV[3])", false},
	{"return redis.call('cl.throttle', true, ARGV[1], ARGV[2], ARGV[3])", false},
	{"return redis.call(KEYS[1], ARGV[1], ARGV[2], ARGV[3])", false},
	{"return redis:call('cl.throttle', KEYS[1])", false},
	{"return other.call('cl.throttle', KEYS[1])", false},
	{"local redis = KEYS[1] return redis.call('cl.throttle', KEYS[1])", false},
	{"local tonumber = KEYS[1] return redis.call('cl.throttle', tonumber(ARGV[1]))", false},
	{"local r = redis.call('cl.throttle', KEYS[1]) return r[1], r[2]", false},
	{"local r = redis.call('cl.throttle', KEYS[1]) local s = redis.call('cl.throttle', KEYS[1]) return r", false},
	{"local r = redis.call('cl.throttle', KEYS[1]) return KEYS[1]", false},
	{"return redis.call('cl.throttle', KEYS[1])[0]", false},
	{"return redis.call('cl.throttle', KEYS[1])['1']", false},
	{"return redis.call('cl.throttle', KEYS[1])[1][1]", false},
	{"return redis.call('cl.throttle', key)", false},
	{"if true then return redis.call('cl.throttle', KEYS[1]) end", false},
	{"return redis.call('cl.throttle', KEYS[1]", false},
}

// recognize returns what a script is, or nil if the interpreter must run it.
func recognize(source string) *native.Call {
	s, err := newEngine(Config{}).Evaluate([]byte(source))
	if err != nil {
		return nil
	}
	return s.Native
}

func TestRecognize(t *testing.T) {
	for _, c := range nativeScripts {
		if is := recognize(c.source) != nil; is != c.native {
			t.Errorf("%s: recognised %v, want %v", c.source, is, c.native)
		}
	}
}

// nativeAnswers are what the command may answer.
var nativeAnswers = [][]int64{{0, 16, 15, -1, 2}, {1, 16, 0, 9223372036854775807, 9007199254740993}, {}}

// appendAnswer appends an answer in RESP2.
func appendAnswer(buf []byte, answer []int64) []byte {
	w := resp.Writer{Buf: buf}
	w.Array(len(answer))
	for _, n := range answer {
		w.Int(n)
	}
	return w.Buf
}

// compareNative runs a script both ways, and reports whether it can run natively.
func compareNative(t *testing.T, e *Engine, source string, answer []int64, keys, argv [][]byte, resp3 bool) bool {
	t.Helper()
	s, err := e.Evaluate([]byte(source))
	if err != nil || s.Native == nil {
		return false
	}
	args, ok := s.Native.Args(nil, keys, argv)
	if !ok {
		return false
	}
	var seen [][]byte
	host := &fakeHost{onCall: func(args [][]byte, buf []byte) []byte {
		for _, a := range args {
			seen = append(seen, bytes.Clone(a))
		}
		return appendAnswer(buf, answer)
	}}
	want, err := e.Run(context.Background(), s, keys, argv, host, resp3, nil)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	if !slices.EqualFunc(args, seen, bytes.Equal) {
		t.Errorf("%s %q %q: native arguments %q, the interpreter's %q", source, keys, argv, args, seen)
	}
	if got := s.Native.AppendReply(answer, nil, resp3); !bytes.Equal(got, want) {
		t.Errorf("%s: answer %d became %q, the interpreter's reply is %q", source, answer, got, want)
	}
	return true
}

func TestNativeIsTheInterpreter(t *testing.T) {
	e := patientEngine()
	ran := 0
	for _, c := range nativeScripts {
		for _, argv := range [][][]byte{
			byteSlices("15", "30", "60"),
			byteSlices("15", "30", "60", "1"),
			byteSlices("0.1", " 7 ", "1e3"),
			byteSlices("007", "0x10", "9007199254740993"),
			byteSlices("", "x", "\r\n"),
			byteSlices("-0", "inf", "nan"),
			byteSlices("12345678901234", "123456789012345", "00"),
			nil,
		} {
			for i, answer := range nativeAnswers {
				if compareNative(t, e, c.source, answer, byteSlices("user:1"), argv, i%2 == 1) {
					ran++
				}
			}
		}
	}
	if ran < 200 {
		t.Errorf("only %d cases ran natively", ran)
	}
}

func FuzzNative(f *testing.F) {
	for _, c := range nativeScripts {
		f.Add(c.source, "key", "15", "30.5", 1)
	}
	f.Add("return redis.call('cl.throttle', KEYS[1], tonumber(ARGV[1]), unpack(ARGV))", "k\x00", " 0x1p3\v", "-1e400", 0)
	e := newEngine(Config{})
	f.Fuzz(func(t *testing.T, source, key, a, b string, answer int) {
		compareNative(t, e, source, nativeAnswers[uint(answer)%uint(len(nativeAnswers))], byteSlices(key), byteSlices(a, b, a), answer%2 == 0)
	})
}

func TestNativeAllocatesNothing(t *testing.T) {
	n := recognize(nativeScripts[0].source)
	keys, argv := byteSlices("user:1"), byteSlices("15", "30", "60")
	answer := nativeAnswers[0]
	var args [][]byte
	var buf []byte
	run := func() {
		args, _ = n.Args(args, keys, argv)
		buf = n.AppendReply(answer, buf[:0], false)
	}
	run()
	if got := testing.AllocsPerRun(100, run); got > 0 {
		t.Errorf("%v allocations", got)
	}
	if !strings.HasPrefix(string(buf), "*5\r\n:0\r\n") {
		t.Errorf("reply %q", buf)
	}
}
