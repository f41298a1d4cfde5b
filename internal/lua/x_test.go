package lua

import "testing"

func BenchmarkTrivial(b *testing.B)  { bench(b, "return 1") }
func BenchmarkThrottle(b *testing.B) { bench(b, "return redis.call('echo', KEYS[1], ARGV[1])") }
func bench(b *testing.B, s string) {
	e := newEngine(b)
	sc, err := e.Load([]byte(s))
	if err != nil {
		b.Fatal(err)
	}
	h := &fakeHost{onCall: func(_ [][]byte, buf []byte) []byte { return append(buf, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"...) }}
	k, a := byteSlices("user:1"), byteSlices("15", "30", "60")
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, err = e.Run(sc, k, a, h, false, buf[:0])
		if err != nil {
			b.Fatal(err)
		}
	}
}
