package lua

import (
	"context"
	"testing"

	"cellserver/internal/test/racetest"
)

var benchScripts = []struct{ name, source string }{
	{"trivial", "return 1"},
	{"call", "return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"},
	{"loop of 100 calls", "for i = 1, 100 do redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3]) end return 1"},
	{"fib(15)", "local function f(n) if n < 2 then return n end return f(n-1) + f(n-2) end return f(15)"},
	{"1000 appends", "local t = {} for i = 1, 1000 do t[#t+1] = i end return #t"},
}

func BenchmarkRun(b *testing.B) {
	e := patientEngine()
	host := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte { return appendAnswer(buf, nativeAnswers[0]) }}
	keys, argv := byteSlices("user:1"), byteSlices("15", "30", "60")
	for _, c := range benchScripts {
		s, err := e.Load([]byte(c.source))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				if buf, err = e.Run(context.Background(), s, keys, argv, host, false, buf[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNative(b *testing.B) {
	n := recognize(benchScripts[1].source)
	keys, argv := byteSlices("user:1"), byteSlices("15", "30", "60")
	var args [][]byte
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		args, _ = n.Args(args, keys, argv)
		buf = n.AppendReply(nativeAnswers[0], buf[:0], false)
	}
}

// BenchmarkNewInterpreter is what the pool saves a run.
func BenchmarkNewInterpreter(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newInterpreter(clock(), nil, "")
	}
}

func BenchmarkEvaluate(b *testing.B) {
	e := patientEngine()
	source := []byte(benchScripts[1].source)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Evaluate(source); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRunAllocations holds what a run costs the collector.
func TestRunAllocations(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates, too")
	}
	e := patientEngine()
	s, err := e.Load([]byte("return 1"))
	if err != nil {
		t.Fatal(err)
	}
	keys, argv := byteSlices("user:1"), byteSlices("15", "30", "60")
	var buf []byte
	got := testing.AllocsPerRun(1000, func() { buf, _ = e.Run(context.Background(), s, keys, argv, nil, false, buf[:0]) })
	if got > 16 {
		t.Errorf("%v allocations a run", got)
	}
}
