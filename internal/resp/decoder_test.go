package resp

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// defaultLimits are the server's defaults.
func defaultLimits() Limits { return Limits{MaxArgs: 1 << 20, MaxCommandBytes: 4 << 20} }

// decoding is the result of decoding a stream.
type decoding struct {
	commands [][]string
	taken    int    // bytes consumed
	err      string // empty if decoding can continue
}

func (d decoding) String() string {
	return fmt.Sprintf("%.300q of %d bytes, error %q", d.commands, d.taken, d.err)
}

// decode feeds a stream to a Decoder as a connection does: up to each cut, then completely, in one buffer
// that keeps unconsumed bytes.
func decode(t testing.TB, d Decoder, stream []byte, cuts []int) decoding {
	t.Helper()
	buf := bytes.Clone(stream)
	var got decoding
	var args [][]byte
	for i := 0; i <= len(cuts); i++ {
		end := len(buf)
		if i < len(cuts) {
			end = cuts[i]
		}
		for {
			n, cmd, err := d.Next(buf[got.taken:end:end], args)
			if err != nil {
				var protocol *ProtocolError
				if !errors.As(err, &protocol) || n != 0 {
					t.Fatalf("got %d bytes and error %#v, want none and a *ProtocolError", n, err)
				}
				got.err = err.Error()
				return got
			}
			if n < 0 || n > end-got.taken || n == 0 && len(cmd) != 0 {
				t.Fatalf("took %d bytes of %d for %d arguments", n, end-got.taken, len(cmd))
			}
			if n == 0 {
				break
			}
			got.taken += n
			if args = cmd; len(cmd) > 0 {
				got.commands = append(got.commands, texts(cmd))
			}
		}
	}
	return got
}

func texts(args [][]byte) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = string(arg)
	}
	return out
}

// everyCut returns the ways to cut a stream: into single bytes and, if it is short, at each position.
func everyCut(length int) [][]int {
	bytewise := make([]int, length)
	for i := range bytewise {
		bytewise[i] = i + 1
	}
	all := [][]int{bytewise}
	for _, cut := range bytewise {
		if length <= 512 || cut%4099 == 0 {
			all = append(all, []int{cut})
		}
	}
	return all
}

// decoderCase is a stream, in the part that the Decoder consumes and the part that it leaves, and the result.
type decoderCase struct {
	name  string
	taken string
	left  string // incomplete, or the cause of err
	want  [][]string
	err   string // after "Protocol error: "
}

func runDecoderCases(t *testing.T, d Decoder, cases []decoderCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			stream := []byte(tt.taken + tt.left)
			want := decoding{tt.want, len(tt.taken), ""}
			if tt.err != "" {
				want.err = "Protocol error: " + tt.err
			}
			if got := decode(t, d, stream, nil); !reflect.DeepEqual(got, want) {
				t.Errorf("whole: got %v, want %v", got, want)
			}
			for _, cuts := range everyCut(len(stream)) {
				if got := decode(t, d, stream, cuts); !reflect.DeepEqual(got, want) {
					t.Fatalf("cut at %.20s: got %v, want %v", fmt.Sprint(cuts), got, want)
				}
			}
		})
	}
}

// TestFraming: results as of Redis 7.0.15, except in the last group. Most were verified with it.
func TestFraming(t *testing.T) { runDecoderCases(t, Decoder{Limits: defaultLimits()}, framingCases()) }

func framingCases() []decoderCase {
	const ping = "*1\r\n$4\r\nPING\r\n"
	pong := [][]string{{"PING"}}
	const badCount, badLength = "invalid multibulk length", "invalid bulk length"
	return []decoderCase{
		{name: "nothing"},
		{name: "one command", taken: ping, want: pong},
		{name: "a pipeline", taken: ping + "*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\nPING\r\n" + ping,
			want: [][]string{{"PING"}, {"ECHO", "a\r\n"}, {"PING"}, {"PING"}}},
		{name: "an empty bulk", taken: "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", want: [][]string{{"ECHO", ""}}},
		{name: "only an empty bulk", taken: "*1\r\n$0\r\n\r\n" + ping, want: [][]string{{""}, {"PING"}}},
		{name: "binary bulks", taken: "*2\r\n$3\r\n\x00*1\r\n$4\r\n\r\n$1\r\n", want: [][]string{{"\x00*1", "\r\n$1"}}},
		{name: "unfinished header", taken: ping, left: "*1\r", want: pong},
		{name: "unfinished bulk header", left: "*1\r\n$4"},
		{name: "unfinished bulk", left: "*2\r\n$4\r\nECHO\r\n$5\r\nhel"},
		{name: "unfinished end", left: "*1\r\n$4\r\nPING\r"},

		{name: "*0", taken: "*0\r\n" + ping, want: pong},
		{name: "*-1", taken: "*-1\r\n" + ping, want: pong},
		{name: "*-10", taken: "*-10\r\n" + ping, want: pong},
		{name: "CRLF", taken: "\r\n" + ping, want: pong},
		{name: "two LF", taken: "\n\n" + ping, want: pong},

		{name: "2^31 arguments", left: "*2147483648\r\n" + ping, err: badCount},
		{name: "2^63-1 arguments", left: "*9223372036854775807\r\n", err: badCount},
		{name: "arguments beyond 64 bits", left: "*99999999999999999999\r\n", err: badCount},
		{name: "*abc", taken: ping, left: "*abc\r\n", want: pong, err: badCount},
		{name: "* alone", left: "*\r\n", err: badCount},
		{name: "*-0", left: "*-0\r\n", err: badCount},
		{name: "*+1", left: "*+1\r\n$4\r\nPING\r\n", err: badCount},
		{name: "*01", left: "*01\r\n$4\r\nPING\r\n", err: badCount},
		{name: "* 1", left: "* 1\r\n$4\r\nPING\r\n", err: badCount},
		{name: "LF before CR", left: "*1\n\r\n$4\r\nPING\r\n", err: badCount},

		{name: "no dollar", left: "*1\r\nfoo\r\n", err: "expected '$', got 'f'"},
		{name: "no dollar but a line end", left: "*1\r\n\r\n" + ping, err: `expected '$', got '\r'`},
		{name: "no dollar but a byte that is no text", left: "*1\r\n\xff\r\n", err: `expected '$', got '\xff'`},
		{name: "no dollar in the second bulk", left: "*2\r\n$4\r\nECHO\r\n:1\r\n", err: "expected '$', got ':'"},
		{name: "$-10", left: "*1\r\n$-10\r\n", err: badLength},
		{name: "$-2", left: "*1\r\n$-2\r\n", err: badLength},
		{name: "$-1", left: "*1\r\n$-1\r\n" + ping, err: badLength},
		{name: "$-0", left: "*1\r\n$-0\r\n\r\n", err: badLength},
		{name: "$blabla", left: "*1\r\n$blabla\r\n", err: badLength},
		{name: "$ alone", left: "*1\r\n$\r\n", err: badLength},
		{name: "$003", left: "*1\r\n$003\r\nfoo\r\n", err: badLength},
		{name: "$+3", left: "*1\r\n$+3\r\nfoo\r\n", err: badLength},
		{name: "two billion bytes", left: "*2\r\n$4\r\nPING\r\n$2000000000\r\n", err: badLength},
		{name: "2^63-1 bytes", left: "*1\r\n$9223372036854775807\r\n", err: badLength},
		{name: "bytes beyond 64 bits", left: "*1\r\n$99999999999999999999\r\n", err: badLength},

		{name: "the byte behind a CR is skipped unseen", taken: "*1\rX$4\rYPING\r\n" + ping,
			want: [][]string{{"PING"}, {"PING"}}},
		{name: "a CR behind a CR", taken: "*1\r\r$4\r\rPING\r\n", want: pong},
		{name: "even a NUL", taken: "*1\r\x00$4\r\x00PING\r\n", want: pong},
		{name: "*0 and no LF", taken: "*0\rX" + ping, want: pong},

		{name: "Tile38's form is an inline command", taken: "$3 abc\r\n$3\r\n", want: [][]string{{"$3", "abc"}, {"$3"}}},

		// Intended differences from Redis 7.
		{name: "a bulk longer than it says", left: "*1\r\n$4\r\nPINGxx" + ping, err: "expected CRLF after a bulk string"},
		{name: "a bulk with only LF", left: "*1\r\n$4\r\nPING\n\n", err: "expected CRLF after a bulk string"},
		{name: "a bulk with only CR", left: "*1\r\n$4\r\nPING\r\r", err: "expected CRLF after a bulk string"},
		// Redis 7 waits for 64 KiB.
		{name: "NUL in a header", left: "*\x001\r\n", err: badCount},
		{name: "NUL in a header without an end", left: "*1\x00", err: badCount},
		{name: "NUL in a header without the end of its end", left: "*1\x00\r", err: badCount},
		{name: "NUL in a bulk header without the end of its end", left: "*1\r\n$4\x00\r", err: badLength},
		{name: "NUL in a bulk header", left: "*1\r\n$\x004\r\nPING\r\n", err: badLength},
		{name: "NUL in a bulk header without an end", left: "*1\r\n$4\x00", err: badLength},
		{name: "NUL in a bulk header without a dollar", left: "*1\r\nf\x00o\r\n", err: badLength},
	}
}

// TestPlainHeader: the short way of reading headers does not change results.
func TestPlainHeader(t *testing.T) {
	const before = "*1\r\n"
	check := func(line string, want int, wantOK bool) {
		wantNext := 0
		if wantOK {
			wantNext = len(before) + strings.Index(line, "\n") + 1
		}
		if n, next := plainHeader([]byte(before+line), len(before), '$'); next != wantNext || wantOK && n != want {
			t.Errorf("%q: got %d, continues at %d, want %d, at %d", line, n, next, want, wantNext)
		}
	}
	check("$4\r\nPING\r\n", 4, true)
	for _, n := range []int{0, 9, 10, 1048576, 9999999} {
		check(fmt.Sprintf("$%d\r\n", n), n, true)
	}
	for _, line := range []string{ // left to header
		"$10000000\r\n", "", "$", "$4", "$4\r", "$4\rX", "$4\n\n", "$4X\r\n", "$\r\n", "$00\r\n", "$01\r\n", "$-1\r\n", "*4\r\n",
		"$/\r\n", "$:\r\n", // next to the digits in ASCII
	} {
		check(line, 0, false)
	}
}

func TestLongLines(t *testing.T) {
	const ping = "PING\r\n"
	fill := strings.Repeat
	const tooBig = "too big inline request"
	runDecoderCases(t, Decoder{Limits: defaultLimits()}, []decoderCase{
		{name: "the longest inline command", taken: fill("a", 65535) + "\r\n" + ping,
			want: [][]string{{fill("a", 65535)}, {"PING"}}},
		{name: "one byte more", left: fill("a", 65536) + "\r\n", err: tooBig},
		{name: "no newline yet", left: fill("a", 65536)},
		{name: "no newline", left: fill("a", 65537), err: tooBig},
		{name: "blanks alone", taken: fill(" ", 65535) + "\r\n" + ping, want: [][]string{{"PING"}}},

		// As in Redis, where a C string ends at a NUL, a newline after it is not found.
		{name: "NUL in an inline command", left: "a\x00b\nPING\r\n"},
		{name: "NUL behind an inline command", taken: ping, left: "\x00\n\n\n", want: [][]string{{"PING"}}},
		{name: "NUL, and newlines up to 64 KiB", left: "\x00" + fill("\n", 65535)},
		{name: "NUL, and newlines beyond", left: "\x00" + fill("\n", 65536), err: tooBig},
		{name: "newlines, then NUL", taken: fill("\n", 70000), left: "a\x00\n"},

		{name: "the longest header", left: "*" + fill("1", 65535)},
		{name: "a longer header", left: "*" + fill("1", 65536), err: "too big mbulk count string"},
		{name: "the longest header with its end", left: "*" + fill("1", 65535) + "\r\n", err: "invalid multibulk length"},
		{name: "a longer header with its end", left: "*" + fill("1", 65536) + "\r\n", err: "too big mbulk count string"},
		{name: "the longest bulk header", left: "*1\r\n$" + fill("1", 65535)},
		{name: "a longer bulk header", left: "*1\r\n$" + fill("1", 65536), err: "too big bulk count string"},
		{name: "a longer bulk header without a dollar", left: "*1\r\n" + fill("x", 65537) + "\r\n",
			err: "too big bulk count string"},
		{name: "a long header with NUL", left: "*" + fill("1", 65000) + "\x00", err: "invalid multibulk length"},
		{name: "NUL right behind the longest header", left: "*" + fill("1", 65535) + "\x00", err: "invalid multibulk length"},
		{name: "NUL right behind a longer one", left: "*" + fill("1", 65536) + "\x00", err: "too big mbulk count string"},
		{name: "NUL right behind the longest bulk header", left: "*1\r\n$" + fill("1", 65535) + "\x00", err: "invalid bulk length"},
		{name: "NUL right behind a longer bulk header", left: "*1\r\n$" + fill("1", 65536) + "\x00", err: "too big bulk count string"},
		{name: "a longer header, then NUL", left: "*" + fill("1", 66000) + "\x00", err: "too big mbulk count string"},
		{name: "a longer header, then NUL and its end", left: "*" + fill("1", 66000) + "\x00\r\n", err: "too big mbulk count string"},
	})
}

func TestBounds(t *testing.T) {
	const tooBig = "too big command, more than 64 bytes"
	runDecoderCases(t, Decoder{Limits: Limits{MaxArgs: 3, MaxCommandBytes: 64}}, []decoderCase{
		{name: "most arguments", taken: "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", want: [][]string{{"a", "b", "c"}}},
		{name: "too many", left: "*4\r\n$1\r\na\r\n", err: "invalid multibulk length"},
		{name: "longest command", taken: "*2\r\n$4\r\nECHO\r\n$43\r\n" + strings.Repeat("x", 43) + "\r\n",
			want: [][]string{{"ECHO", strings.Repeat("x", 43)}}},
		{name: "twice, each by itself", taken: strings.Repeat("*1\r\n$4\r\nPING\r\n", 2) + "*1\r\n$53\r\n" + strings.Repeat("x", 53) + "\r\n",
			want: [][]string{{"PING"}, {"PING"}, {strings.Repeat("x", 53)}}},
		{name: "too long", left: "*2\r\n$4\r\nECHO\r\n$44\r\n", err: tooBig},
		{name: "too long by its framing", left: "*1\r\n$64\r\n", err: tooBig},
		{name: "a bulk that is too long by itself", left: "*1\r\n$65\r\n", err: "invalid bulk length"},
		{name: "too long when most of it has come", left: "*3\r\n$20\r\n" + strings.Repeat("x", 20) + "\r\n$20\r\n" + strings.Repeat("y", 20) + "\r\n$1\r\n",
			err: tooBig},
	})
	const million = 1 << 20
	runDecoderCases(t, Decoder{Limits: defaultLimits()}, []decoderCase{
		{name: "a million arguments", left: fmt.Sprintf("*%d\r\n$4\r\n", million)},
		{name: "one more", left: fmt.Sprintf("*%d\r\n", million+1), err: "invalid multibulk length"},
		{name: "4 MiB in a bulk", left: "*1\r\n$4194304\r\n", err: "too big command, more than 4194304 bytes"},
		{name: "one byte more", left: "*1\r\n$4194305\r\n", err: "invalid bulk length"},
		{name: "the largest bulk", left: "*1\r\n$4194288\r\n"},
		{name: "one byte more, with its framing", left: "*1\r\n$4194289\r\n", err: "too big command, more than 4194304 bytes"},
	})
}

// TestUnauthenticated: the bounds of CVE-2021-32675 are checked before all others.
func TestUnauthenticated(t *testing.T) {
	ten, most := "*10\r\n"+strings.Repeat("$1\r\na\r\n", 10), strings.Repeat("x", 16384)
	cases := []decoderCase{
		{name: "ten arguments", taken: ten, want: [][]string{strings.Split("aaaaaaaaaa", "")}},
		{name: "eleven", left: "*11\r\n", err: "unauthenticated multibulk length"},
		{name: "2^31", left: "*2147483648\r\n", err: "unauthenticated multibulk length"},
		{name: "beyond 64 bits", left: "*99999999999999999999\r\n", err: "invalid multibulk length"},
		{name: "none", taken: "*-11\r\n*0\r\n"},
		{name: "longest bulk", taken: "*2\r\n$4\r\nAUTH\r\n$16384\r\n" + most + "\r\n", want: [][]string{{"AUTH", most}}},
		{name: "a longer one", left: "*2\r\n$4\r\nAUTH\r\n$16385\r\n", err: "unauthenticated bulk length"},
		{name: "two billion bytes", left: "*1\r\n$2000000000\r\n", err: "unauthenticated bulk length"},
		{name: "$-1", left: "*1\r\n$-1\r\n", err: "invalid bulk length"},
	}
	runDecoderCases(t, Decoder{Limits: defaultLimits(), Unauthenticated: true}, cases)
	runDecoderCases(t, Decoder{Limits: Limits{MaxArgs: 3, MaxCommandBytes: 64}, Unauthenticated: true}, []decoderCase{
		{name: "before --max-args", left: "*11\r\n", err: "unauthenticated multibulk length"},
		{name: "not in its place", left: "*4\r\n", err: "invalid multibulk length"},
		{name: "before the command's bound", left: "*1\r\n$16385\r\n", err: "unauthenticated bulk length"},
		{name: "nor here", left: "*1\r\n$16384\r\n", err: "invalid bulk length"},
	})
}

// TestAuthenticatedBetweenCommands: the bounds can change between commands.
func TestAuthenticatedBetweenCommands(t *testing.T) {
	d := Decoder{Limits: defaultLimits(), Unauthenticated: true}
	buf := []byte("*1\r\n$4\r\nPING\r\n*11\r\n" + strings.Repeat("$1\r\na\r\n", 11))
	n, _, err := d.Next(buf, nil)
	if err != nil || n != 14 {
		t.Fatalf("got %d bytes, %v", n, err)
	}
	d.Unauthenticated = false
	if n, args, err := d.Next(buf[n:], nil); err != nil || n != len(buf)-14 || len(args) != 11 {
		t.Errorf("got %d bytes, %d arguments, %v", n, len(args), err)
	}
}

// TestArgumentsShareMemory: the arguments are slices of the buffer, in the slice that the caller passed.
func TestArgumentsShareMemory(t *testing.T) {
	d := Decoder{Limits: defaultLimits()}
	for _, in := range []string{"*2\r\n$4\r\nECHO\r\n$3\r\nfoo\r\n", "ECHO foo\r\n", "ECHO \"f\\x6fo\"\r\n"} {
		buf, memory := []byte(in), make([][]byte, 0, 2)
		_, args, err := d.Next(buf, memory)
		if err != nil || len(args) != 2 {
			t.Fatalf("%q: got %q, %v", in, args, err)
		}
		if &args[0] != &memory[:1][0] {
			t.Errorf("%q: the arguments are not in args' memory", in)
		}
		at := bytes.Index(buf, args[1])
		if string(args[1]) != "foo" || at < 0 || &buf[at] != &args[1][0] {
			t.Errorf("%q: %q is not a slice of the buffer", in, args[1])
		}
	}
}
