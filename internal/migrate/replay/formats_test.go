package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"cellserver/internal/funnel"
)

const monitored = `OK
1700000000.000000 [0 127.0.0.1:5000] "CL.THROTTLE" "user \"1\"" "0" "1" "1"
1700000000.100000 [0 127.0.0.1:5000] "hello" "2"
1700000000.500000 [0 lua] "cl.throttle" "user \"1\"" "0" "1" "1"
1700000000.500000 [3 [::1]:5000] "cl.throttle" "user \"1\"" "0" "1" "1"
1700000000.400000 [0 127.0.0.1:5000] "cl.bthrottle" "a" "0" "1" "1" "5"
1700000000.499999 [0 127.0.0.1:5000] "cl.slidingwindow" "w" "3" "60" "2"
1700000000.600000 [0 127.0.0.1:5000] "cl.bucket" "take" "b" "7"
`

const combinedLog = `192.0.2.1 - - [14/Nov/2023:22:13:20 +0000] "GET /a?b=1 HTTP/1.1" 200 612 "-" "curl/8.0 \x22x\x22"
192.0.2.1 - alice [14/Nov/2023:23:13:20 +0100] "POST /a HTTP/1.1" 200 612 "http://example.com/ x" "curl/8.0 \"x\"" "198.51.100.1, 198.51.100.2"

2001:db8::1 - - [14/Nov/2023:22:13:21 +0000] "\x16\x03" 400 0
`

const jsonLog = `{"msec":1700000000.250,"remote_addr":"192.0.2.1","request":"GET /a?b HTTP/2.0","status":200,"user":null,"args":{}}
{"msec":"1700000000.750","remote_addr":"192.0.2.1","request":"GET /\u00e4 HTTP/2.0","status":404,"time_local":"x"}
`

func TestFormats(t *testing.T) {
	limit := Options{MaxBurst: integer(0), Count: integer(1), Period: integer(1)}
	with := func(o Options, change func(*Options)) Options {
		change(&o)
		return o
	}
	for _, tt := range []struct {
		name    string
		format  Format
		options Options
		in, out string
	}{
		{"MONITOR", Monitor, Options{}, monitored, "at,db,key,call" + results + `
1700000000.000000,0,"user ""1""","CL.THROTTLE ""user \""1\"""" 0 1 1",0,1,0,-1,1
1700000000.500000,0,"user ""1""","cl.throttle ""user \""1\"""" 0 1 1",1,1,0,1,1
1700000000.500000,3,"user ""1""","cl.throttle ""user \""1\"""" 0 1 1",0,1,0,-1,1
1700000000.500000,0,w,cl.slidingwindow w 3 60 2,0,3,1,-1,60
`},
		{"MONITOR with another reading", Monitor, Options{Reading: funnel.Capacity}, `+1.000000 [0 a] "cl.throttle" "k" "2" "1" "1"` + "\r\n",
			"at,db,key,call" + results + "\n1.000000,0,k,cl.throttle k 2 1 1,0,2,1,-1,1\n"},
		{"MONITOR with another limit", Monitor, Options{Algorithm: FixedWindow, MaxCount: integer(1), Period: integer(60)}, before(monitored, "1700000000.4"),
			"at,db,key,call" + results + `
1700000000.000000,0,"user ""1""","CL.THROTTLE ""user \""1\"""" 0 1 1",0,1,0,-1,60
1700000000.500000,0,"user ""1""","cl.throttle ""user \""1\"""" 0 1 1",1,1,0,60,60
1700000000.500000,3,"user ""1""","cl.throttle ""user \""1\"""" 0 1 1",0,1,0,-1,60
`},
		{"MONITOR in files that were joined", Monitor, Options{}, "OK\n" + `1.000000 [0 a] "cl.throttle" "k" "2" "1" "1"` + "\nOK\n" + `1.000000 [0 a] "cl.throttle" "k" "2" "1" "1"`,
			"at,db,key,call" + results + "\n1.000000,0,k,cl.throttle k 2 1 1,0,3,2,-1,1\n1.000000,0,k,cl.throttle k 2 1 1,0,3,1,-1,2\n"},
		{"combined by users", Combined, with(limit, func(o *Options) { o.KeyFields = []string{"remote_user", "request"} }),
			`192.0.2.1 - john \x22doe [14/Nov/2023:22:13:20 +0000] "GET /[a]" 200 1` + "\n", "at,key" + results + "\n2023-11-14T22:13:20Z,\"john \"\"doe GET /[a]\",0,1,0,-1,1\n"},
		{"combined", Combined, limit, combinedLog, "at,key" + results + `
2023-11-14T22:13:20Z,192.0.2.1,0,1,0,-1,1
2023-11-14T22:13:20Z,192.0.2.1,1,1,0,1,1
2023-11-14T22:13:21Z,2001:db8::1,0,1,0,-1,1
`},
		{"combined by other fields", Combined, with(limit, func(o *Options) { o.KeyFields = []string{"request_method", "uri", "http_user_agent"} }),
			before(combinedLog, "\n\n"),
			"at,key" + results + `
2023-11-14T22:13:20Z,"GET /a curl/8.0 ""x""",0,1,0,-1,1
2023-11-14T22:13:20Z,"POST /a curl/8.0 ""x""",0,1,0,-1,1
`},
		{"combined by a request without a method", Combined, with(limit, func(o *Options) { o.KeyFields = []string{"request", "request_uri"} }),
			strings.TrimPrefix(combinedLog, before(combinedLog, "2001")), "at,key" + results + "\n2023-11-14T22:13:21Z,\x16\x03 ,0,1,0,-1,1\n"},
		{"JSON", JSONLines, limit, jsonLog, "at,key" + results + `
2023-11-14T22:13:20.25Z,192.0.2.1,0,1,0,-1,1
2023-11-14T22:13:20.75Z,192.0.2.1,1,1,0,1,1
`},
		{"JSON by other fields", JSONLines, with(limit, func(o *Options) { o.KeyFields, o.Quantity = []string{"status", "request_uri"}, integer(0) }), jsonLog, "at,key" + results + `
2023-11-14T22:13:20.25Z,200 /a?b,0,1,1,-1,0
2023-11-14T22:13:20.75Z,404 /ä,0,1,1,-1,0
`},
		{"JSON with another time", JSONLines, with(limit, func(o *Options) { o.TimeField, o.KeyFields = "start", []string{"user"} }),
			`{"msec":1,"start":"14/Nov/2023:22:13:20 +0000","user":null}`, "at,key" + results + "\n2023-11-14T22:13:20Z,,0,1,0,-1,1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, in := range map[string]io.Reader{
				"plain": strings.NewReader(tt.in), "gzip": bytes.NewReader(packed(t, tt.in)), "gzip in pieces": iotest.OneByteReader(bytes.NewReader(packed(t, tt.in))),
				"behind a mark and an empty line": strings.NewReader("\ufeff\r\n" + tt.in),
			} {
				var out strings.Builder
				if _, err := Rows(t.Context(), in, &out, tt.options); err != nil || out.String() != tt.out {
					t.Errorf("%s: got %v and\n%s\nwant\n%s", name, err, out.String(), tt.out)
				}
			}
			o := tt.options
			o.Format = tt.format
			if out, _, err := rows(t, tt.in, o); err != nil || out != tt.out {
				t.Errorf("told: got %v and\n%s", err, out)
			}
		})
	}
}

func before(text, part string) string {
	begin, _, _ := strings.Cut(text, part)
	return begin
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPassedOver(t *testing.T) {
	s, err := Summarize(t.Context(), strings.NewReader(monitored), Options{})
	if err != nil || s.Skipped.Calls != 2 || s.Allowed != 3 || s.Limited != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestClockSetBack: MONITOR's lines are in order of execution, even when the clock steps back a little.
func TestClockSetBack(t *testing.T) {
	const line = ` [0 a] "cl.throttle" "k" "0" "1" "1"` + "\n"
	in := "10.000000" + line + "9.500000" + line + "11.000000" + line
	const head = "at,db,key,call" + results + "\n"
	const call = ",0,k,cl.throttle k 0 1 1"
	out, _, err := rows(t, in, Options{})
	if want := head + "10.000000" + call + ",0,1,0,-1,1\n10.000000" + call + ",1,1,0,1,1\n11.000000" + call + ",0,1,0,-1,1\n"; err != nil || out != want {
		t.Errorf("got %v and\n%s", err, out)
	}
	out, _, err = rows(t, in, Options{ReorderWindow: time.Second})
	if want := head + "9.500000" + call + ",0,1,0,-1,1\n10.000000" + call + ",1,1,0,1,1\n11.000000" + call + ",0,1,0,-1,1\n"; err != nil || out != want {
		t.Errorf("sorted: got %v and\n%s", err, out)
	}
	_, _, err = rows(t, "10.000000"+line+"8.000000"+line, Options{})
	checkError(t, err, "replay: trace.csv:2: out of order by 2s: sort the trace, or give --reorder-window 2s or more")
}

func TestFormatErrors(t *testing.T) {
	limit := Options{MaxBurst: integer(0), Count: integer(1), Period: integer(1)}
	with := func(change func(*Options)) Options {
		o := limit
		change(&o)
		return o
	}
	const json = `{"time":1,"remote_addr":"a"}` + "\n"
	first, _, _ := strings.Cut(combinedLog, "\n")
	for _, tt := range []struct {
		name    string
		options Options
		in      string
		want    string
	}{
		{"no limit", Options{Count: integer(1), Period: integer(1)}, combinedLog, "max_burst is missing: give --max-burst"},
		{"half a limit for MONITOR", Options{Count: integer(1), Period: integer(1)}, monitored, "max_burst is missing: give --max-burst"},
		{"keys of what has keys", with(func(o *Options) { o.KeyFields = []string{"x"} }), "at,key\n", "trace.csv: it is csv, which has keys; --key is for access logs"},
		{"a time field of a combined log", with(func(o *Options) { o.TimeField = "x" }), combinedLog, "--time-field names a field of a log in JSON; a combined log has one time"},
		{"a line of another format", limit, combinedLog + "x\n", "trace.csv:5: " + errCombined.Error()},
		{"a bracket that is not closed", limit, first + "\n1 - - [14/Nov\n", "trace.csv:2: " + errCombined.Error()},
		{"a quote that is not closed", limit, first + "\n" + first[:60] + "\n", "trace.csv:2: " + errCombined.Error()},
		{"a time with an unknown month", limit, first + "\n" + strings.Replace(first, "Nov", "Foo", 1), `trace.csv:2: "14/Foo/2023:22:13:20 +0000" is not a time: want one such as 14/Nov/2023:22:13:20 +0000`},
		{"a field that combined lacks", with(func(o *Options) { o.KeyFields = []string{"host"} }), first,
			`trace.csv:1: the line has no "host"; it has remote_addr, remote_user, time_local, request, status, body_bytes_sent, http_referer, http_user_agent, request_method, request_uri, uri and server_protocol`},
		{"a field that JSON lacks", with(func(o *Options) { o.KeyFields = []string{"host"} }), json, `trace.csv:1: the line has no field "host"`},
		{"a field that is no text", with(func(o *Options) { o.KeyFields = []string{"x"} }), `{"time":1,"x":[1]}`, `trace.csv:1: "x" is neither text nor a number`},
		{"no time", limit, json + `{"remote_addr":"a"}`, "trace.csv:2: the line has no time: no field msec, time_iso8601, time_local, @timestamp, timestamp, time; name another by --time-field"},
		{"a time in JSON that is a boolean", limit, `{"time":true,"remote_addr":"a"}`, `trace.csv:1: time: "true" is not a time: give RFC 3339 or Unix seconds`},
		{"no JSON", limit, json + "{", "trace.csv:2: " + errJSON.Error()},
		{"null", limit, json + "null", "trace.csv:2: " + errJSON.Error()},
		{"a line that MONITOR does not show", Options{}, "OK\nError: Server closed the connection\n", `trace.csv:2: want a line of MONITOR, such as 1700000000.123456 [0 127.0.0.1:5000] "cl.throttle" "key" "15" "30" "60"`},
		{"a call with an error", Options{}, `1.000000 [0 a] "cl.throttle" "k" "x" "1" "1"`, "trace.csv:1: cl.throttle: Couldn't parse as integer: x"},
		{"gzip that was cut", limit, string(packed(t, combinedLog)[:60]), "trace.csv: read after line 1: unexpected EOF"},
		{"gzip with a broken header", limit, "\x1f\x8bxxxxxxxxxx", "trace.csv: gzip: invalid header"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := rows(t, tt.in, tt.options)
			if tt.name == "gzip that was cut" { // the number of bytes unpacked is up to gzip
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
				return
			}
			checkError(t, err, "replay: "+tt.want)
		})
	}
}

func TestSkipBadLines(t *testing.T) {
	out, skipped, err := rows(t, `1.000000 [0 a] "cl.throttle" "k" "0" "1" "1"`+"\nx\n"+`2.000000 [0 a] "cl.throttle" "k" "0" "1" "1"`, Options{SkipBad: true})
	if err != nil || skipped.Rows != 1 || strings.Count(out, "\n") != 3 {
		t.Errorf("%q, %+v, %v", out, skipped, err)
	}
	checkError(t, skipped.First, "trace.csv:2: "+strings.TrimPrefix(skipped.First.Error(), "trace.csv:2: "))
}

func TestLongLine(t *testing.T) {
	in := io.MultiReader(strings.NewReader(jsonLog+`{"x":"`), endless{})
	var out strings.Builder
	_, err := Rows(t.Context(), in, &out, Options{Name: "trace", MaxBurst: integer(0), Count: integer(1), Period: integer(1), SkipBad: true})
	checkError(t, err, "replay: trace: read after line 2: "+errLongLine.Error())
}

// TestFirstLineIsEnough: the format is known from the first line, however late the next one.
func TestFirstLineIsEnough(t *testing.T) {
	r, w := io.Pipe()
	opened := make(chan trace)
	go func() {
		in, _ := open(r, Options{})
		opened <- in
	}()
	if _, err := io.WriteString(w, "OK\n"); err != nil {
		t.Fatal(err)
	}
	if _, ok := (<-opened).(*monitorTrace); !ok {
		t.Error("it is taken for another format")
	}
	_ = w.Close()
}

// FuzzFormats reads any bytes in each format. The output is a CSV trace with the same answers.
func FuzzFormats(f *testing.F) {
	for _, seed := range []string{monitored, combinedLog, jsonLog, "OK\n", "{}\n", "\x1f\x8b"} {
		for format := range Formats() {
			f.Add([]byte(seed), byte(format))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, format byte) {
		o := Options{Format: Format(Formats()[int(format)%len(Formats())]), SkipBad: true, MaxBurst: integer(2), Count: integer(3), Period: integer(5)}
		var out bytes.Buffer
		skipped, err := Rows(t.Context(), bytes.NewReader(in), &out, o)
		s, summaryErr := Summarize(t.Context(), bytes.NewReader(in), o)
		if (err == nil) != (summaryErr == nil) || s.Skipped.Rows != skipped.Rows {
			t.Fatalf("rows end in %v with %v, the summary in %v with %v", err, skipped, summaryErr, s.Skipped)
		}
		if o.Format != Combined && o.Format != JSONLines || out.Len() == 0 {
			return // CSV has its own test, and MONITOR's calls have quantities
		}
		var again bytes.Buffer
		o.Format = CSV
		if _, err := Rows(t.Context(), bytes.NewReader(out.Bytes()), &again, o); err != nil || !bytes.Equal(again.Bytes(), out.Bytes()) {
			t.Fatalf("replaying the output changes it: %v\n%q\n%q", err, out.Bytes(), again.Bytes())
		}
	})
}
