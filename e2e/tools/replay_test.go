package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"cellserver/e2e/harness"
	"cellserver/internal/app"
	"cellserver/internal/app/usage"
)

const replayResults = ",limited,limit,remaining,retry_after,reset_after"

func callReplay(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut strings.Builder
	err = app.Run(t.Context(), append([]string{"replay"}, args...), strings.NewReader(stdin), &out, &errOut)
	return out.String(), errOut.String(), err
}

func TestReplayVectors(t *testing.T) {
	const path = "../../internal/funnel/vectors/throttle_whole_us.csv"
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		stdin string
		args  []string
	}{{"", []string{path}}, {string(want), nil}, {string(want), []string{"-"}}} {
		if out, errOut, err := callReplay(t, tt.stdin, tt.args...); err != nil || errOut != "" || out != string(want) {
			t.Errorf("%q: got error %v, %q on stderr and %d bytes, want the input's %d", tt.args, err, errOut, len(out), len(want))
		}
	}
}

func TestReplayFlags(t *testing.T) {
	limit := []string{"--max-burst=0", "--count=1", "--period=010"}
	tests := []struct {
		name           string
		args           []string
		in             string
		stdout, stderr string
	}{
		{"limits, in decimal", append(limit, "--quantity=0"), "at,key\n0,a\n", "at,key" + replayResults + "\n0,a,0,1,1,-1,0\n", ""},
		{"capacity", append(limit, "--max-burst=15", "--count=30", "--period=60", "--burst-is-capacity"),
			"at,key\n0,laoqian:reply\n", "at,key" + replayResults + "\n0,laoqian:reply,0,15,14,-1,2\n", ""},
		{"another algorithm", []string{"--algorithm=slidingwindow", "--max-count=1", "--period=10"},
			"at,key\n0,a\n5,a\n10,a\n", "at,key" + replayResults + "\n0,a,0,1,0,-1,10\n5,a,1,1,0,5,5\n10,a,0,1,0,-1,10\n", ""},
		{"what is denied counts", []string{"--algorithm=slidingwindow", "--max-count=1", "--period=10", "--count-denied"},
			"at,key\n0,a\n5,a\n10,a\n", "at,key" + replayResults + "\n0,a,0,1,0,-1,10\n5,a,1,1,0,10,10\n10,a,1,1,0,10,10\n", ""},
		{"milliseconds", append(limit, "--milliseconds"), "at,key\n0,a\n", "at,key" + replayResults + "\n0,a,0,1,0,-1,10\n", ""},
		{"a token bucket", []string{"--algorithm=tokenbucket", "--capacity=2", "--refill-count=1", "--period=1", "--burst-is-capacity"},
			"at,key\n0,a\n", "at,key" + replayResults + "\n0,a,0,2,1,-1,1\n", ""},
		{"reorder window", append(limit, "--reorder-window", "1s"),
			"at,key\n1,a\n0,b\n", "at,key" + replayResults + "\n0,b,0,1,0,-1,10\n1,a,0,1,0,-1,10\n", ""},
		{"an access log", append(limit, "--key", "remote_addr uri", "--quantity=2"),
			`192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] "GET /a?b HTTP/1.1" 200 1 "-" "-"` + "\n",
			"at,key" + replayResults + "\n1970-01-01T00:00:01Z,192.0.2.1 /a,1,1,1,-1,0\n", ""},
		{"an access log in JSON, told", append(limit, "--format=json", "--time-field=at"), `{"at":1,"time":2,"remote_addr":"a"}`,
			"at,key" + replayResults + "\n1970-01-01T00:00:01Z,a,0,1,0,-1,10\n", ""},
		{"a quota of an access log", []string{"--algorithm=quota", "--max-count=1000", "--every=day", "--time-zone=Europe/Berlin", "--start=06:00"},
			`192.0.2.1 - - [01/Jan/2026:05:59:50 +0100] "GET /a?b HTTP/1.1" 200 1 "-" "-"` + "\n",
			"at,key" + replayResults + "\n2026-01-01T04:59:50Z,192.0.2.1,0,1000,999,-1,10\n", ""},
		{"multiples of an hour", []string{"--algorithm=quota", "--max-count=1", "--every=hour", "--epoch"},
			"at,key\n3500,a\n3500,a\n", "at,key" + replayResults + "\n3500,a,0,1,0,-1,100\n3500,a,1,1,0,100,100\n", ""},
		{"debits", append(limit, "--debit", "--quantity=3"), "at,key\n0,a\n", "at,key" + replayResults + "\n0,a,1,1,0,30,30\n", ""},
		{"MONITOR", nil, `1.000000 [0 a] "cl.throttle" "k" "0" "1" "1"` + "\n" + `1.500000 [0 a] "cl.bthrottle" "k" "0" "1" "1" "1"` + "\n",
			"at,db,key,call" + replayResults + "\n1.000000,0,k,cl.throttle k 0 1 1,0,1,0,-1,1\n",
			"replay: skipped 1 call of limiters that no trace can decide, such as CL.BTHROTTLE\n"},
		{"one bad row", append(limit, "--skip-bad"), "at,key\nx,a\n", "at,key" + replayResults + "\n",
			"replay: skipped 1 bad row, the first: stdin:2: at: \"x\" is not a time: give RFC 3339 or Unix seconds\n"},
		{"three bad rows", append(limit, "--skip-bad"), "at_ns,key\n1,a\nx\n0,a\ny,b\n", "at_ns,key" + replayResults + "\n1,a,0,1,0,-1,10\n",
			"replay: skipped 3 bad rows, the first: stdin:3: the row has 1 fields, the header 2\n"},
		{"summary", append(limit, "--summary", "--top=1", "--skip-bad"), "at,key\n0,a\n1.25,a\n1.25,b\n1.25,b\n1.25,b\nx,a\n",
			"rows           5\nallowed        2\nlimited        3\nlimited share  60.00 %\nfirst          1970-01-01T00:00:00Z\n" +
				"last           1970-01-01T00:00:01.25Z\ntime span      1.25s\nskipped rows   1\n\nmost limited keys\n2  b\n",
			"replay: skipped 1 bad row, the first: stdin:7: at: \"x\" is not a time: give RFC 3339 or Unix seconds\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, errOut, err := callReplay(t, tt.in, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if out != tt.stdout {
				t.Errorf("got on stdout\n%s\nwant\n%s", out, tt.stdout)
			}
			if errOut != tt.stderr {
				t.Errorf("got on stderr\n%s\nwant\n%s", errOut, tt.stderr)
			}
		})
	}
}

func TestReplayErrors(t *testing.T) {
	trace := harness.WriteFile(t, "at,key,max_burst,count,period\n0,a,0,1,1\n0,a,0,abc,1\n")
	header := harness.WriteFile(t, "1 [0 1:1] \"CL.THROTTLE\"\n")
	const seeHelp = "; see cellserver replay --help"
	tests := []struct {
		args  []string
		want  string
		usage bool
	}{
		{[]string{"a", "b"}, "replay: want at most one FILE, got 2", true},
		{[]string{"--nope"}, "unknown flag --nope" + seeHelp, true},
		{[]string{"--count", "0x1"}, `--count takes a decimal integer of up to 64 bits, such as 10; got "0x1"`, true},
		{[]string{"--algorithm", "leaky"}, `--algorithm takes funnel, tokenbucket, fixedwindow, slidingwindow, approxwindow, bucket or quota; got "leaky"`, true},
		{[]string{"--count-denied"}, "replay: --count-denied is for windows, and the --algorithm is funnel", true},
		{[]string{"--debit", "--algorithm=slidingwindow"}, "replay: --debit is for limiters with debits, and the --algorithm is slidingwindow", true},
		{[]string{"--debit", "--algorithm=quota", "--count-denied"}, "replay: --debit and --count-denied exclude each other: a debit is never denied", true},
		{[]string{"--every=day"}, "replay: --every, --time-zone, --start and --epoch are for quotas, and the --algorithm is funnel", true},
		{[]string{"--time-zone", "Berlin"}, `--time-zone takes an IANA name, such as Europe/Berlin; got "Berlin"`, true},
		{[]string{"--start", "6"}, "replay: --every, --time-zone, --start and --epoch are for quotas, and the --algorithm is funnel", true},
		{[]string{"--start", "24:00"}, `--start takes HH:MM of a day, 1 to 7 of a week, 1 to 31 of a month or MM-DD of a year, such as 06:00; got "24:00"`, true},
		{[]string{"--every", "days"}, `--every takes second, minute, hour, day, week, month or year; got "days"; did you mean day?`, true},
		{[]string{"--top", "-1"}, `--top takes a whole number of at least 0, such as 10; got "-1"`, true},
		{[]string{"--reorder-window", "-1s"}, `--reorder-window takes a time of at least 0, such as 30s, or seconds, such as 30; got "-1s"`, true},
		{[]string{"nope.csv"}, "replay: open nope.csv: no such file or directory", false},
		{[]string{trace}, "replay: " + trace + `:3: count: "abc" is not an integer; --skip-bad skips such rows`, false},
		{[]string{trace, "--summary"}, "replay: " + trace + `:3: count: "abc" is not an integer; --skip-bad skips such rows`, false},
		{[]string{header}, "replay: " + header + `:1: bare " in non-quoted-field`, false}, // nothing would be left
		{[]string{"--summary", "--skip-bad", harness.WriteFile(t, "at,key,max_burst,count,period\nx,y,0,1,1\n")}, "replay: nothing was replayed: all rows were skipped as bad; correct them, or give the trace's --format", false},
		{[]string{"--summary", "--json", harness.WriteFile(t, "1700000000.000001 [0 127.0.0.1:5] \"cl.mthrottle\" \"a\" \"1\" \"1\" \"1\" \"1\"\n")}, "replay: nothing was replayed: all calls are of limiters that no trace can decide; see cellserver replay --help", false},
		{[]string{"--summary", harness.WriteFile(t, "1700000000.000001 [0 127.0.0.1:5] \"get\" \"a\"\n")}, "replay: nothing was replayed: the trace has no request; of MONITOR's lines only calls of limiters are replayed", false},
		{nil, "replay: stdin: the input is empty: its first line must name the columns, such as at_ns,key,max_burst,count,period", false},
	}
	for _, tt := range tests {
		out, _, err := callReplay(t, "", tt.args...)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: got error\n%v\nwant\n%s", tt.args, err, tt.want)
		}
		var usage usage.Error
		if errors.As(err, &usage) != tt.usage {
			t.Errorf("%q: usage error: %v, want %v", tt.args, !tt.usage, tt.usage)
		}
		if wantOut := len(tt.args) == 1 && tt.args[0] == trace; wantOut != (out != "") {
			t.Errorf("%q: got output %q", tt.args, out)
		}
	}
}

func TestReplayHelpExample(t *testing.T) {
	out, errOut, err := callReplay(t, "", "--help")
	if err != nil || errOut != "" {
		t.Fatalf("got error %v and %q on stderr", err, errOut)
	}
	for _, line := range strings.Split(out, "\n") {
		if len(line) > 120 {
			t.Errorf("%d bytes wide: %s", len(line), line)
		}
	}
	m := regexp.MustCompile(`(?s)printf '(.*)' \|\n +cellserver replay ([^\n]*)\n(.*)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no example in\n%s", out)
	}
	got, _, err := callReplay(t, strings.ReplaceAll(m[1], `\n`, "\n"), strings.Fields(m[2])...)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(m[3], "\n  ", "\n")[2:]; got != want {
		t.Errorf("the example gives\n%s\nbut promises\n%s", got, want)
	}
}

func TestReplayFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{nil, {"--summary"}, {"--help"}} {
		in := strings.NewReader("at,key,max_burst,count,period\n0,a,0,1,1\n")
		if err := app.Run(t.Context(), append([]string{"replay"}, args...), in, full, io.Discard); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%q: got error %v", args, err)
		}
	}
}

// TestReplayStopsWhileItsInputIsSilent simulates Ctrl-C before any input.
func TestReplayStopsWhileItsInputIsSilent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, w := io.Pipe()
	defer func() { _ = w.Close() }()
	go func() {
		_, _ = io.WriteString(w, "at,key,max_burst,count,period\n")
		cancel()
	}()
	if err := app.Run(ctx, []string{"replay"}, silent, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

func TestReplayProgress(t *testing.T) {
	trace := harness.WriteFile(t, "at,key,max_burst,count,period\n"+strings.Repeat("0,a,0,1,1\n", 10_000))
	plain, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	const line = `^\r4096 rows, \d+ rows/s, 0 MB, \d+ %\x1b\[K.*\r\x1b\[K$`
	tests := []struct {
		name   string
		args   []string
		stdout func(terminal *os.File) io.Writer
		want   string
	}{
		{"rows to a file", nil, func(*os.File) io.Writer { return plain }, line},
		{"a summary", []string{"--summary", "--top=0"}, func(*os.File) io.Writer { return io.Discard }, line},
		{"a summary on the same terminal", []string{"--summary", "--top=0"}, func(f *os.File) io.Writer { return f },
			strings.TrimSuffix(line, "$") + `rows +10000\r\n`},
		{"rows on the same terminal", nil, func(f *os.File) io.Writer { return f }, `^at,key[^\x1b]*$`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := onTerminal(t, func(terminal *os.File) {
				if err := app.Run(t.Context(), append([]string{"replay", trace}, tt.args...), nil, tt.stdout(terminal), terminal); err != nil {
					t.Error(err)
				}
			})
			if !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("got %.200q on the terminal, want %q", got, tt.want)
			}
		})
	}
	var errOut bytes.Buffer
	if err := app.Run(t.Context(), []string{"replay", trace}, nil, io.Discard, &errOut); err != nil || errOut.Len() > 0 {
		t.Errorf("got error %v and %q on a stderr that is no terminal", err, errOut.String())
	}
}

// onTerminal returns what do writes to its terminal.
func onTerminal(t *testing.T, do func(terminal *os.File)) string {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	seen := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // EIO once the other side is closed
		seen <- string(b)
	}()
	do(terminal)
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	return <-seen
}
