package resp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/test/racetest"
)

// TestPiecesCostLinearTime feeds long commands one byte at a time. It counts the bytes that the Decoder scans; if it
// restarted each time, the largest streams would take hours.
func TestPiecesCostLinearTime(t *testing.T) {
	const many = 40_000
	for _, tt := range []struct {
		name   string
		stream string
		args   int
		err    string
	}{
		{name: "1 MiB in one bulk", stream: "*1\r\n$1048576\r\n" + strings.Repeat("x", 1<<20) + "\r\n", args: 1},
		{name: "40,000 bulks", stream: fmt.Sprintf("*%d\r\n", many) + strings.Repeat("$4\r\nabcd\r\n", many), args: many},
		{name: "64 KiB inline", stream: strings.Repeat("abcdefg ", 8190) + "\r\n", args: 8190},
		{name: "64 KiB inline and quoted", stream: `"` + strings.Repeat(`\"`, 32000) + "\"\r\n", args: 1},
		{name: "64 KiB inline, deaf", stream: "\x00" + strings.Repeat("\n", 65536), err: "too big inline request"},
		{name: "64 KiB of a header", stream: "*" + strings.Repeat("0", 65536), err: "too big mbulk count string"},
		{name: "64 KiB of a bulk header", stream: "*1\r\n$" + strings.Repeat("0", 65536), err: "too big bulk count string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Decoder{Limits: defaultLimits()}
			buf, looked := []byte(tt.stream), 0
			for end := 1; end <= len(buf); end++ {
				if d.argsLeft == 0 || d.bulk < 0 { // in a header; a bulk's body is only counted
					looked += end - d.checked
				}
				n, args, err := nextWhole(&d, buf[:end])
				switch done := end == len(buf); {
				case !done && (n != 0 || err != nil):
					t.Fatalf("after %d of %d bytes: took %d, %v", end, len(buf), n, err)
				case done && tt.err != "" && (err == nil || err.Error() != "Protocol error: "+tt.err):
					t.Fatalf("got error %v, want %s", err, tt.err)
				case done && tt.err == "" && (err != nil || n != len(buf) || len(args) != tt.args):
					t.Fatalf("took %d of %d bytes for %d arguments, %v; want %d arguments", n, len(buf), len(args), err, tt.args)
				}
			}
			if looked > 2*len(buf) {
				t.Errorf("looked at %d bytes of %d", looked, len(buf))
			}
		})
	}
}

// nextWhole is Next, and Split of what that leaves.
func nextWhole(d *Decoder, buf []byte) (n int, args [][]byte, err error) {
	if n, args, err = d.Next(buf, nil); d.Long() > 0 && n > 0 {
		args = Split(buf[:n], d.Long(), func() {})
	}
	return n, args, err
}

// TestLongCommands: Next reads only the first arguments of a command with more than LongArgs, and Split all.
func TestLongCommands(t *testing.T) {
	words := func(n int) []byte {
		b := fmt.Appendf(nil, "*%d\r\n", n)
		for i := range n {
			b = fmt.Appendf(b, "$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
		}
		return b
	}
	for _, tt := range []struct{ args, read, long int }{
		{LongArgs, LongArgs, 0},
		{LongArgs + 1, headArgs, LongArgs + 1},
		{20 * LongArgs, headArgs, 20 * LongArgs},
	} {
		d, in := Decoder{Limits: defaultLimits()}, words(tt.args)
		n, first, err := d.Next(in, nil)
		if n != len(in) || len(first) != tt.read || d.Long() != tt.long || err != nil {
			t.Errorf("%d arguments: took %d bytes of %d, read %d and said %d, %v", tt.args, n, len(in), len(first), d.Long(), err)
		}
		pauses := 0
		all := Split(bytes.Clone(in), tt.args, func() { pauses++ })
		if len(all) != tt.args || pauses < tt.args/LongArgs {
			t.Fatalf("%d arguments: %d of all, %d pauses", tt.args, len(all), pauses)
		}
		for i, arg := range all {
			if string(arg) != fmt.Sprint(i) || i < len(first) && !bytes.Equal(arg, first[i]) {
				t.Fatalf("%d arguments: number %d is %q", tt.args, i, arg)
			}
		}
		for _, next := range []string{"*1\r\n$4\r\nPING\r\n", "PING\r\n", "*0\r\n", "*-1\r\n"} {
			for _, in := range [][]byte{in, []byte(next)} {
				if _, _, err := d.Next(in, nil); err != nil {
					t.Fatal(err)
				}
			}
			if d.Long() != 0 {
				t.Errorf("%q behind it has %d arguments", next, d.Long())
			}
		}
	}
}

// throttles returns a pipeline of n calls for different keys.
func throttles(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		key := fmt.Sprint("user", i)
		fmt.Fprintf(&b, "*5\r\n$11\r\nCL.THROTTLE\r\n$%d\r\n%s\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n", len(key), key)
	}
	return b.Bytes()
}

func TestNextDoesNotAllocate(t *testing.T) {
	if racetest.Enabled {
		t.Skip("the race detector allocates")
	}
	inline := []byte(strings.Repeat("CL.THROTTLE \"user 1\" 15 30 60\r\n", 128))
	for name, pipeline := range map[string][]byte{"RESP": throttles(128), "inline": inline} {
		d, args, buf := Decoder{Limits: defaultLimits()}, make([][]byte, 0, 8), make([]byte, len(pipeline))
		allocs := testing.AllocsPerRun(100, func() {
			copy(buf, pipeline) // inline commands are unquoted in place
			for rest := buf; len(rest) > 0; {
				n, cmd, err := d.Next(rest, args)
				if err != nil || len(cmd) != 5 {
					t.Fatalf("%s: got %q, %v", name, cmd, err)
				}
				rest, args = rest[n:], cmd
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations for 128 commands", name, allocs)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	pipeline := throttles(128)
	d, args := Decoder{Limits: defaultLimits()}, make([][]byte, 0, 8)
	b.ReportAllocs()
	b.SetBytes(int64(len(pipeline)))
	for b.Loop() {
		for rest := pipeline; len(rest) > 0; {
			n, cmd, err := d.Next(rest, args)
			if err != nil {
				b.Fatal(err)
			}
			rest, args = rest[n:], cmd
		}
	}
}

// TestManyArgumentsAreNotMoved: there is room for all of them at once.
func TestManyArgumentsAreNotMoved(t *testing.T) {
	in := []byte("*100000\r\n" + strings.Repeat("$1\r\nx\r\n", 100_000))
	d := Decoder{Limits: Limits{MaxArgs: 1 << 20, MaxCommandBytes: 4 << 20}}
	if got := testing.AllocsPerRun(3, func() {
		if n, args, err := nextWhole(&d, in); n != len(in) || len(args) != 100_000 || err != nil {
			t.Fatal(n, len(args), err)
		}
	}); got > 4 { // moving them as they come would be 17
		t.Errorf("%.0f allocations", got)
	}
}
