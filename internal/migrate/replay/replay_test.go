package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cellserver/internal/funnel"
)

const results = ",limited,limit,remaining,retry_after,reset_after"

func integer(n int64) *int64 { return &n }

func rows(t *testing.T, in string, o Options) (out string, skipped Skipped, err error) {
	t.Helper()
	var b strings.Builder
	o.Name = "trace.csv"
	skipped, err = Rows(t.Context(), strings.NewReader(in), &b, o)
	return b.String(), skipped, err
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("got error  %q\nwant error %q", got, want)
	}
}

// TestVectors replays results recorded from redis-cell, byte for byte.
func TestVectors(t *testing.T) {
	for _, name := range []string{"throttle_whole_us.csv", "throttle_any_ns.csv"} {
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile("../../funnel/vectors/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for _, window := range []time.Duration{0, time.Second, math.MaxInt64} {
				got, _, err := rows(t, string(want), Options{ReorderWindow: window})
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("reorder window %s: the output is not the input", window)
				}
			}
		})
	}
}

func TestRows(t *testing.T) {
	limit := Options{MaxBurst: integer(0), Count: integer(1), Period: integer(1)}
	for _, tt := range []struct {
		name    string
		options Options
		in, out string
	}{
		{"all columns", Options{},
			"at_ns,key,max_burst,count,period,quantity\n0,a,4,1,10,6\n0,a,4,1,10,2\n",
			"at_ns,key,max_burst,count,period,quantity" + results + "\n0,a,4,1,10,6,1,5,5,-1,0\n0,a,4,1,10,2,0,5,3,-1,20\n"},
		{"another order, no quantity", Options{},
			"period,key,count,at_ns,max_burst\n60,user123,30,0,15\n",
			"period,key,count,at_ns,max_burst" + results + "\n60,user123,30,0,15,0,16,15,-1,2\n"},
		{"the capacity reading", Options{Reading: funnel.Capacity},
			"at_ns,key,max_burst,count,period\n0,laoqian:reply,15,30,60\n",
			"at_ns,key,max_burst,count,period" + results + "\n0,laoqian:reply,15,30,60,0,15,14,-1,2\n"},
		{"limits from options", limit,
			"at_ns,key\n0,a\n0,a\n",
			"at_ns,key" + results + "\n0,a,0,1,0,-1,1\n0,a,1,1,0,1,1\n"},
		{"a quantity from options", Options{MaxBurst: integer(4), Count: integer(1), Period: integer(10), Quantity: integer(3)},
			"at_ns,key\n0,a\n",
			"at_ns,key" + results + "\n0,a,0,5,2,-1,30\n"},
		{"an empty field falls back, another does not", Options{MaxBurst: integer(4), Quantity: integer(2)},
			"at_ns,key,max_burst,count,period,quantity\n0,a,,1,10,\n0,b,0,1,10,1\n",
			"at_ns,key,max_burst,count,period,quantity" + results + "\n0,a,,1,10,,0,5,3,-1,20\n0,b,0,1,10,1,0,1,0,-1,10\n"},
		{"an empty quantity is 1", Options{},
			"at_ns,key,max_burst,count,period,quantity\n0,a,4,1,10,\n",
			"at_ns,key,max_burst,count,period,quantity" + results + "\n0,a,4,1,10,,0,5,4,-1,10\n"},
		{"signs and leading zeros", Options{},
			"at_ns,key,max_burst,count,period,quantity\n-05,a,+004,01,010,+1\n-5,a,4,1,10,-1\n",
			"at_ns,key,max_burst,count,period,quantity" + results + "\n-05,a,+004,01,010,+1,0,5,4,-1,10\n-5,a,4,1,10,-1,0,5,5,-1,0\n"},
		{"result columns are replaced", limit,
			"limited,at_ns,reset_after,key,limit,remaining,retry_after\nx,0,x,a,,x,x\n",
			"at_ns,key" + results + "\n0,a,0,1,0,-1,1\n"},
		{"other columns are passed through", limit,
			"note,at_ns,key,,note\n1,0,a,\" x\",\"2,\"\"\"\n",
			"note,at_ns,key,,note" + results + "\n1,0,a,\" x\",\"2,\"\"\",0,1,0,-1,1\n"},
		{"RFC 3339 and Unix seconds", limit,
			"at,key\n1970-01-01T00:00:01Z,a\n1.5,a\n1970-01-01T01:00:02+01:00,a\n",
			"at,key" + results + "\n1970-01-01T00:00:01Z,a,0,1,0,-1,1\n1.5,a,1,1,0,1,1\n1970-01-01T01:00:02+01:00,a,0,1,0,-1,1\n"},
		{"a byte order mark", limit, "\ufeffat_ns,key\n0,a\n", "at_ns,key" + results + "\n0,a,0,1,0,-1,1\n"},
		{"CRLF, empty lines, no last line end", limit,
			"\r\nat_ns,key\r\n\r\n0,a\r\n\r\n0,a",
			"at_ns,key" + results + "\n0,a,0,1,0,-1,1\n0,a,1,1,0,1,1\n"},
		{"keys are any bytes", limit,
			"at_ns,key\n0,\"a,b\"\n0,\"a\nb\"\n0,\"a\nb\"\n0,\n0,\n0,\xff\x00\n0,\xff\x01\n",
			"at_ns,key" + results + "\n0,\"a,b\",0,1,0,-1,1\n0,\"a\nb\",0,1,0,-1,1\n0,\"a\nb\",1,1,0,1,1\n" +
				"0,,0,1,0,-1,1\n0,,1,1,0,1,1\n0,\xff\x00,0,1,0,-1,1\n0,\xff\x01,0,1,0,-1,1\n"},
		{"a CR before a line end in quotes", limit, "at_ns,key\n0,\"a\r\r\nb\"\n", "at_ns,key" + results + "\n0,\"a\r\r\nb\",0,1,0,-1,1\n"},
		{"no rows", limit, "at_ns,key\n", "at_ns,key" + results + "\n"},
		{"the ends of time", limit,
			"at_ns,key\n-9223372036854775808,a\n-9223372036854775808,a\n9223372036854775807,a\n",
			"at_ns,key" + results + "\n-9223372036854775808,a,0,1,0,-1,1\n-9223372036854775808,a,1,1,0,1,1\n9223372036854775807,a,0,1,0,-1,1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := rows(t, tt.in, tt.options)
			checkError(t, err, "")
			if out != tt.out {
				t.Errorf("got\n%s\nwant\n%s", out, tt.out)
			}
		})
	}
}

func TestHeaderErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "replay: trace.csv: the input is empty: its first line must name the columns, such as at_ns,key,max_burst,count,period"},
		{"\ufeff\n\n", "replay: trace.csv: the input is empty: its first line must name the columns, such as at_ns,key,max_burst,count,period"},
		{"0,a,1,1,1\n", "replay: trace.csv:1: no time column: the header must name at_ns (Unix nanoseconds) or at (RFC 3339 or Unix seconds); for a log that is not CSV, give --format"},
		{"at,at_ns,key\n", "replay: trace.csv:1: columns at and at_ns are both present: keep one"},
		{"at,max_burst\n", "replay: trace.csv:1: column key is missing: add it to the header"},
		{"\nat,key,key\n", "replay: trace.csv:2: column key appears twice"},
		{"at,key,count,count\n", "replay: trace.csv:1: column count appears twice"},
		{"at,key,count,period\n", "replay: trace.csv:1: column max_burst is missing: add it to the header or give --max-burst"},
		{"at,key,max_burst,period\n", "replay: trace.csv:1: column count is missing: add it to the header or give --count"},
		{"at,key,max_burst,count\n", "replay: trace.csv:1: column period is missing: add it to the header or give --period"},
		{"at,k\"ey\n", `replay: trace.csv:1: bare " in non-quoted-field`},
	}
	for _, tt := range tests {
		out, _, err := rows(t, tt.in, Options{SkipBad: true})
		checkError(t, err, tt.want)
		if out != "" {
			t.Errorf("%q: got output %q", tt.in, out)
		}
	}
}

func TestBadRows(t *testing.T) {
	const header = "at_ns,key,max_burst,count,period,quantity"
	tests := []struct{ row, want string }{
		{"0,a,0,1,1", "the row has 5 fields, the header 6"},
		{"0,a,0,1,1,1,", "the row has 7 fields, the header 6"},
		{"0,a\"b,0,1,1,1", `bare " in non-quoted-field`},
		{"0,\"a\"b,0,1,1,1", `extraneous or missing " in quoted-field`},
		{"0,\"a\n\"b,0,1,1,1", `extraneous or missing " in quoted-field (the row continues to line 4)`},
		{"x,a,0,1,1,1", `at_ns: "x" is not an integer`},
		{",a,0,1,1,1", `at_ns: "" is not an integer`},
		{"1e9,a,0,1,1,1", `at_ns: "1e9" is not an integer`},
		{"9223372036854775808,a,0,1,1,1", `at_ns: "9223372036854775808" does not fit in 64 bits`},
		{"0,a, 0,1,1,1", `max_burst: " 0" is not an integer`},
		{"0,a,1_0,1,1,1", `max_burst: "1_0" is not an integer`},
		{"0,a,0,abc,1,1", `count: "abc" is not an integer`},
		{"0,a,0,\"1\n\x1b[2J\",1,1", `count: "1\n\x1b[2J" is not an integer`},
		{"0,a,0,1,0x1,1", `period: "0x1" is not an integer`},
		{"0,a,0,1,1,1.0", `quantity: "1.0" is not an integer`},
		{"0,a,0,1,1," + strings.Repeat("9", 65), `quantity: "` + strings.Repeat("9", 64) + `"... does not fit in 64 bits`},
		{"0,a,,1,1,1", "max_burst: the field is empty: fill it in or give --max-burst"},
		{"0,a,-1,1,1,1", "max_burst must be at least 0, got -1"},
		{"0,a,0,0,1,1", "Zero rates are not supported"},
		{"0,a,0,1,9223372036854775807,1", funnel.ErrTooSlow.Error()},
		{"-1500000000,a,0,1,1,1", "out of order by 1.5s: sort the trace, or give --reorder-window 1.5s or more"},
	}
	for _, tt := range tests {
		in := header + "\n0,first,0,1,1,1\n" + tt.row + "\n0,last,0,1,1,1\n"
		first := header + results + "\n0,first,0,1,1,1,0,1,0,-1,1\n"
		out, _, err := rows(t, in, Options{})
		checkError(t, err, "replay: trace.csv:3: "+tt.want)
		if out != first {
			t.Errorf("%q: got output %q, want the row before", tt.row, out)
		}
		out, skipped, err := rows(t, in, Options{SkipBad: true})
		checkError(t, err, "")
		checkError(t, skipped.First, "trace.csv:3: "+tt.want)
		if out != first+"0,last,0,1,1,1,0,1,0,-1,1\n" || skipped.Rows != 1 {
			t.Errorf("%q: skipped %d rows and got output %q, want the rows around", tt.row, skipped.Rows, out)
		}
	}
}

func TestUnclosedQuoteTakesTheRest(t *testing.T) {
	in := "at_ns,key,max_burst,count,period\n0,\"a,0,1,1\n0,b,0,1,1\n"
	_, skipped, err := rows(t, in, Options{SkipBad: true})
	checkError(t, err, "")
	checkError(t, skipped.First, `trace.csv:2: extraneous or missing " in quoted-field (the row continues to line 3)`)
}

func TestReorderWindow(t *testing.T) {
	for _, tt := range []struct {
		name     string
		window   time.Duration
		at, want string // a digit per row, in ns
		skipped  int64
	}{
		{"equal times keep their order", 0, "0011", "0011", 0},
		{"no window", 0, "102", "12", 1},
		{"within the window", 2, "2013", "0123", 0},
		{"to the edge of the window", 2, "201", "012", 0},
		{"beyond it, but not before a row given back", 2, "6335", "3356", 0},
		{"before a row given back", 2, "0256138", "023568", 1},
		{"backwards", 9, "9876543210", "0123456789", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := "at_ns,key,max_burst,count,period\n"
			for i, at := range tt.at {
				in += string(at) + "," + string(rune('a'+i)) + ",0,1,1\n"
			}
			out, skipped, err := rows(t, in, Options{ReorderWindow: tt.window, SkipBad: true})
			checkError(t, err, "")
			got, keys := "", ""
			for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
				if line[:1] == got[max(0, len(got)-1):] && line[2:3] < keys[len(keys)-1:] {
					t.Errorf("rows of time %s changed places", line[:1])
				}
				got, keys = got+line[:1], keys+line[2:3]
			}
			if got != tt.want || skipped.Rows != tt.skipped {
				t.Errorf("got order %s and %d skipped, want %s and %d", got, skipped.Rows, tt.want, tt.skipped)
			}
		})
	}
}

func TestBadRowLeavesNoneBehindInTheWindow(t *testing.T) {
	out, _, err := rows(t, "at_ns,key,max_burst,count,period\n2,a,0,1,1\n1,b,0,1,1\nx,c,0,1,1\n", Options{ReorderWindow: time.Hour})
	checkError(t, err, `replay: trace.csv:4: at_ns: "x" is not an integer`)
	if want := "at_ns,key,max_burst,count,period" + results + "\n1,b,0,1,1,0,1,0,-1,1\n2,a,0,1,1,0,1,0,-1,1\n"; out != want {
		t.Errorf("got output %q, want %q", out, want)
	}
}

func TestReadErrors(t *testing.T) {
	const good = "at_ns,key,max_burst,count,period\n0,a,0,1,1\n"
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		in   io.Reader
		want string
	}{
		{"in the header", iotest.ErrReader(broken), "replay: trace.csv: read after line 0: broken"},
		{"in a row", io.MultiReader(strings.NewReader(good+"0,b,0"), iotest.ErrReader(broken)), "replay: trace.csv: read after line 2: broken"},
		{"a quote that is not closed", io.MultiReader(strings.NewReader(good+"0,\""), endless{}), "replay: trace.csv: read after line 2: " + errLongRow.Error()},
		{"a line that does not end", io.MultiReader(strings.NewReader(good+"0,a\""), endless{}), "replay: trace.csv: read after line 3: " + errLongRow.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			_, err := Rows(t.Context(), tt.in, &out, Options{Name: "trace.csv", SkipBad: true})
			checkError(t, err, tt.want)
			if strings.Contains(tt.want, "after line 0") != (out.Len() == 0) {
				t.Errorf("got output %q", out.String())
			}
		})
	}
}

// endless is a file of one letter without a line end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, n := range []int{0, 1, 100_000} { // noticed at the last flush, or long before
		in := "at_ns,key,max_burst,count,period\n" + strings.Repeat("0,a,0,1,1\n", n)
		_, err := Rows(t.Context(), strings.NewReader(in), full, Options{})
		checkError(t, err, "replay: write rows: write /dev/full: no space left on device")
	}
	s, err := Summarize(t.Context(), strings.NewReader("at_ns,key,max_burst,count,period\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkError(t, s.Print(full, 1), "replay: write summary: write /dev/full: no space left on device")
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Progress: func(rows, _ int64) {
		if rows == 2*progressRows {
			cancel()
		}
	}}
	var out bytes.Buffer
	_, err := Rows(ctx, newKeys(1<<40), &out, o)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	if got := bytes.Count(out.Bytes(), []byte("\n")); got != 1+2*progressRows {
		t.Errorf("got %d lines, want the header and %d rows", got, 2*progressRows)
	}
}

func TestProgress(t *testing.T) {
	in := "at_ns,key,max_burst,count,period\n" + strings.Repeat("0,a,0,1,1\n", progressRows) + strings.Repeat("bad\n", progressRows)
	var got []int64
	o := Options{SkipBad: true, Progress: func(rows, bytes int64) { got = append(got, rows, bytes) }}
	if _, _, err := rows(t, in, o); err != nil {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0] != progressRows || got[2] != 2*progressRows || got[3] != int64(len(in)) {
		t.Errorf("got %v, want two calls and %d bytes in the end", got, len(in))
	}
}
