package replay

import (
	"strings"
	"testing"
)

// TestQuotas: the trace's time is the wall clock.
func TestQuotas(t *testing.T) {
	daily := Options{Algorithm: Quota, MaxCount: integer(2), Every: "day", TimeZone: "Europe/Berlin"}
	const midnight = "1700002800" // 2023-11-15 in Berlin
	for _, tt := range []struct {
		name    string
		options Options
		in, out string
	}{
		{"a day of a zone", daily,
			"at,key\n1700002799,a\n1700002799,a\n1700002799.5,a\n" + midnight + ",a\n",
			"at,key" + results + "\n1700002799,a,0,2,1,-1,1\n1700002799,a,0,2,0,-1,1\n1700002799.5,a,1,2,0,1,1\n" + midnight + ",a,0,2,1,-1,86400\n"},
		{"all columns; the count holds until the latest end", Options{Algorithm: Quota},
			"at,key,max_count,every,time_zone,start,epoch\n" +
				"1700000000,a,3,hour,,,\n" + // ends at :00, in 2,800 s
				"1700000000,a,5,DAY,Europe/Berlin,06:00,0\n" +
				"1700002800,a,2,hour,,,\n" + // a new hour, the old day
				"1700002800,a,9,minute,,,1\n",
			"at,key,max_count,every,time_zone,start,epoch" + results + "\n" +
				"1700000000,a,3,hour,,,,0,3,2,-1,2800\n" +
				"1700000000,a,5,DAY,Europe/Berlin,06:00,0,0,5,3,-1,24400\n" +
				"1700002800,a,2,hour,,,,1,2,0,21600,21600\n" +
				"1700002800,a,9,minute,,,1,0,9,6,-1,21600\n"},
		{"empty fields fall back", daily,
			"at,key,max_count,every,time_zone,quantity\n1700002799,a,,,,2\n1700002799,b,1,month,UTC,\n",
			"at,key,max_count,every,time_zone,quantity" + results + "\n1700002799,a,,,,2,0,2,0,-1,1\n1700002799,b,1,month,UTC,,0,1,0,-1,1386001\n"},
		{"a year from April, and multiples of 30 days", Options{Algorithm: Quota, MaxCount: integer(1)},
			"at,key,every,start,epoch\n1711929600,a,year,04-01,\n1711929600,b,month,,1\n",
			"at,key,every,start,epoch" + results + "\n1711929600,a,year,04-01,,0,1,0,-1,31536000\n1711929600,b,month,,1,0,1,0,-1,1382400\n"},
		{"a refund leaves the end", daily,
			"at,key,quantity\n1700002700,a,2\n1700002700,a,-1\n",
			"at,key,quantity" + results + "\n1700002700,a,2,0,2,0,-1,100\n1700002700,a,-1,0,2,1,-1,100\n"},
		{"what is denied counts", Options{Algorithm: Quota, CountDenied: true, MaxCount: integer(1), Every: "hour"},
			"at,key,quantity\n1700000000,a,2\n1700000000,a,1\n",
			"at,key,quantity" + results + "\n1700000000,a,2,1,1,0,-1,2800\n1700000000,a,1,1,1,0,2800,2800\n"},
		{"a night of 25 hours in an access log", daily,
			"192.0.2.1 - - [28/Oct/2023:22:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n" +
				"192.0.2.1 - - [29/Oct/2023:00:00:00 +0200] \"GET / HTTP/1.1\" 200 1\n" +
				"192.0.2.1 - - [29/Oct/2023:23:59:59 +0100] \"GET / HTTP/1.1\" 200 1\n" +
				"192.0.2.1 - - [30/Oct/2023:00:00:00 +0100] \"GET / HTTP/1.1\" 200 1\n",
			"at,key" + results + "\n2023-10-28T22:00:00Z,192.0.2.1,0,2,1,-1,90000\n2023-10-28T22:00:00Z,192.0.2.1,0,2,0,-1,90000\n" +
				"2023-10-29T22:59:59Z,192.0.2.1,1,2,0,1,1\n2023-10-29T23:00:00Z,192.0.2.1,0,2,1,-1,86400\n"},
		{"MONITOR", Options{},
			monitorCalls("1700002799.000000", "cl.quota k 1 DAY 1 TZ Europe/Berlin", "CL.QUOTA k 1 day tz Europe/Berlin", "cl.quota k 5 day TZ Europe/Berlin DEBIT") +
				monitorCalls("1700002800.000000", "cl.quota k 1 DAY TZ Europe/Berlin COUNTDENIED"),
			"at,db,key,call" + results + "\n" +
				"1700002799.000000,0,k,cl.quota k 1 DAY 1 TZ Europe/Berlin,0,1,0,-1,1\n" +
				"1700002799.000000,0,k,CL.QUOTA k 1 day tz Europe/Berlin,1,1,0,1,1\n" +
				"1700002799.000000,0,k,cl.quota k 5 day TZ Europe/Berlin DEBIT,0,5,3,-1,1\n" +
				"1700002800.000000,0,k,cl.quota k 1 DAY TZ Europe/Berlin COUNTDENIED,0,1,0,-1,86400\n"},
		{"MONITOR by the quota of flags", daily,
			monitorCalls("1700002799.000000", "cl.throttle k 0 1 1 2", "cl.debit k 0 1 1 3", "cl.refund k 0 1 1 2"),
			"at,db,key,call" + results + "\n" +
				"1700002799.000000,0,k,cl.throttle k 0 1 1 2,0,2,0,-1,1\n" +
				"1700002799.000000,0,k,cl.debit k 0 1 1 3,1,2,0,1,1\n" +
				"1700002799.000000,0,k,cl.refund k 0 1 1 2,0,2,0,-1,1\n"},
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

// monitorCalls returns MONITOR's lines of calls at a time.
func monitorCalls(at string, calls ...string) string {
	var b strings.Builder
	for _, call := range calls {
		b.WriteString(at + ` [0 a] "` + strings.ReplaceAll(call, " ", `" "`) + "\"\n")
	}
	return b.String()
}

func TestQuotaErrors(t *testing.T) {
	all := Options{Algorithm: Quota, MaxCount: integer(1), Every: "day"}
	with := func(change func(*Options)) Options {
		o := all
		change(&o)
		return o
	}
	const start = "a start requires windows of a day or longer; use DAY, WEEK, MONTH or YEAR, or leave out the start"
	for _, tt := range []struct {
		options Options
		in      string
		want    string
	}{
		{Options{Algorithm: Quota}, "at,key,every\n", "trace.csv:1: column max_count is missing: add it to the header or give --max-count"},
		{Options{Algorithm: Quota}, "at,key,max_count\n", "trace.csv:1: column every is missing: add it to the header or give --every"},
		{all, "at,key,every,start,every\n", "trace.csv:1: column every appears twice"},
		{Options{Algorithm: Quota}, "at,key,max_count,every\n0,a,1,day\n0,a,1,\n", "trace.csv:3: every: the field is empty: fill it in or give --every"},
		{all, "at,key,every\n0,a,days\n", `trace.csv:2: every: "days" is no window: want second, minute, hour, day, week, month or year`},
		{all, "at,key,time_zone\n0,a,Berlin\n", "trace.csv:2: unknown time zone 'Berlin'; use an IANA name, such as Europe/Berlin"},
		{all, "at,key,start\n0,a,6\n", "trace.csv:2: start of a day must be HH:MM, such as 06:00, got '6'"},
		{all, "at,key,every,start\n0,a,hour,06:00\n", "trace.csv:2: " + start},
		{all, "at,key,epoch\n0,a,true\n", `trace.csv:2: epoch: "true" is neither 0 nor 1`},
		{with(func(o *Options) { o.TimeZone = "Europe/Berlin" }), "at,key,epoch\n0,a,1\n", "trace.csv:2: windows since the epoch have no time zone; leave out one of the two"},
		{all, "at,key,max_count\n0,a,0\n", "trace.csv:2: max_count must be at least 1, got 0"},
		{Options{Algorithm: Quota, MaxCount: integer(1)}, combinedLog, "every is missing: give --every"},
		{with(func(o *Options) { o.Every = "hour"; o.Start = "06:00" }), combinedLog, start},
		{Options{Algorithm: Quota, MaxCount: integer(1)}, monitored, "every is missing: give --every"},
		{Options{}, monitorCalls("1.000000", "cl.quota k 1 days"), "trace.csv:1: cl.quota: syntax error; usage: CL.QUOTA <key> <max_count> SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|YEAR [<quantity>] [TZ <zone>] [START <start>] [EPOCH] [COUNTDENIED|DEBIT] [ATMOST]"},
		{Options{}, monitorCalls("1.000000", "cl.quota k 1 day TZ Nowhere"), "trace.csv:1: cl.quota: unknown time zone 'Nowhere'; use an IANA name, such as Europe/Berlin"},
	} {
		_, _, err := rows(t, tt.in, tt.options)
		checkError(t, err, "replay: "+tt.want)
	}
}

func TestDebits(t *testing.T) {
	window := Options{Algorithm: FixedWindow, MaxCount: integer(2), Period: integer(10)}
	with := func(o Options, change func(*Options)) Options {
		change(&o)
		return o
	}
	debits := func(o *Options) { o.Debit = true }
	for _, tt := range []struct {
		name    string
		options Options
		in, out string
	}{
		{"a column", Options{MaxBurst: integer(1), Count: integer(1), Period: integer(1)},
			"at,key,quantity,debit\n0,a,5,0\n0,a,5,1\n0,a,1,\n4,a,1,1\n",
			"at,key,quantity,debit" + results + "\n0,a,5,0,1,2,2,-1,0\n0,a,5,1,1,2,0,4,5\n0,a,1,,1,2,0,4,5\n4,a,1,1,0,2,0,1,2\n"},
		{"a token bucket", with(Options{Algorithm: TokenBucket, Capacity: integer(2), RefillCount: integer(1), Period: integer(1)}, debits),
			"at,key,quantity\n0,a,3\n", "at,key,quantity" + results + "\n0,a,3,1,2,0,2,3\n"},
		{"a fixed window", with(window, debits),
			"at,key,quantity,debit\n0,a,3,\n1,a,1,0\n", "at,key,quantity,debit" + results + "\n0,a,3,,1,2,0,10,10\n1,a,1,0,1,2,0,9,9\n"},
		{"an approximate window", with(window, func(o *Options) { o.Algorithm, o.Debit = ApproxWindow, true }),
			"at,key,quantity\n0,a,4\n", "at,key,quantity" + results + "\n0,a,4,1,2,0,18,20\n"},
		{"an access log", with(window, func(o *Options) { o.Debit, o.Quantity = true, integer(3) }), before(combinedLog, "\n192"),
			"at,key" + results + "\n2023-11-14T22:13:20Z,192.0.2.1,1,2,0,10,10\n"},
		{"MONITOR", Options{},
			monitorCalls("1.000000", "cl.debit k 1 1 1 5", "cl.throttle k 1 1 1", "CL.FIXEDWINDOW w 2 10 3 DEBIT", "cl.slidingwindow s 2 10 3 APPROX DEBIT"),
			"at,db,key,call" + results + "\n1.000000,0,k,cl.debit k 1 1 1 5,1,2,0,4,5\n1.000000,0,k,cl.throttle k 1 1 1,1,2,0,4,5\n" +
				"1.000000,0,w,CL.FIXEDWINDOW w 2 10 3 DEBIT,1,2,0,10,10\n1.000000,0,s,cl.slidingwindow s 2 10 3 APPROX DEBIT,1,2,0,17,20\n"},
		{"MONITOR, at most some", Options{},
			monitorCalls("1.000000", "cl.throttle k 1 1 1 5 ATMOST", "cl.throttle k 1 1 1 5 ATMOST", "CL.FIXEDWINDOW w 2 10 ATMOST", "CL.FIXEDWINDOW w 2 10 9 ATMOST"),
			"at,db,key,call" + results + "\n1.000000,0,k,cl.throttle k 1 1 1 5 ATMOST,0,2,0,-1,2\n1.000000,0,k,cl.throttle k 1 1 1 5 ATMOST,1,2,0,1,2\n" +
				"1.000000,0,w,CL.FIXEDWINDOW w 2 10 ATMOST,0,2,1,-1,10\n1.000000,0,w,CL.FIXEDWINDOW w 2 10 9 ATMOST,0,2,0,-1,10\n"},
		{"MONITOR by another limit, at most some", window,
			monitorCalls("1.000000", "cl.throttle k 1 1 1 ATMOST", "cl.throttle k 1 1 1 4 ATMOST", "cl.throttle k 1 1 1 4 ATMOST"),
			"at,db,key,call" + results + "\n1.000000,0,k,cl.throttle k 1 1 1 ATMOST,0,2,1,-1,10\n1.000000,0,k,cl.throttle k 1 1 1 4 ATMOST,0,2,0,-1,10\n" +
				"1.000000,0,k,cl.throttle k 1 1 1 4 ATMOST,1,2,0,10,10\n"},
		{"MONITOR by another limit with debits", with(window, debits),
			monitorCalls("1.000000", "cl.throttle k 1 1 1 0", "cl.throttle k 1 1 1 4", "cl.refund k 1 1 1 3"),
			"at,db,key,call" + results + "\n1.000000,0,k,cl.throttle k 1 1 1 0,0,2,2,-1,0\n1.000000,0,k,cl.throttle k 1 1 1 4,1,2,0,10,10\n1.000000,0,k,cl.refund k 1 1 1 3,0,2,1,-1,10\n"},
		{"MONITOR by another limit without", with(window, func(o *Options) { o.Algorithm = SlidingWindow }),
			monitorCalls("1.000000", "cl.debit k 1 1 1 4"),
			"at,db,key,call" + results + "\n1.000000,0,k,cl.debit k 1 1 1 4,1,2,2,-1,0\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _, err := rows(t, tt.in, tt.options)
			checkError(t, err, "")
			if out != tt.out {
				t.Errorf("got\n%s\nwant\n%s", out, tt.out)
			}
		})
	}
	for _, tt := range []struct {
		options Options
		in      string
		want    string
	}{
		{window, "at,key,debit\n0,a,yes\n", `trace.csv:2: debit: "yes" is neither 0 nor 1`},
		{window, "at,key,debit,quantity\n0,a,1,1\n0,a,1,0\n", "trace.csv:3: quantity must be at least 1, got 0"},
		{with(window, func(o *Options) { o.CountDenied = true }), "at,key,debit\n0,a,1\n", "trace.csv:2: debit: a debit is never denied; leave out --count-denied"},
		{with(window, func(o *Options) { o.Algorithm = SlidingWindow }), "at,key,debit\n0,a,0\n0,a,1\n", "trace.csv:3: debit: slidingwindow has no debits"},
		{with(window, func(o *Options) { o.Debit, o.Quantity = true, integer(0) }), combinedLog, "quantity must be at least 1, got 0"},
		{Options{Debit: true}, monitored, "max_burst is missing: give --max-burst"},
		{Options{}, monitorCalls("1.000000", "cl.debit k 1 1 1"), "trace.csv:1: cl.debit: wrong number of arguments for 'cl.debit' command; usage: CL.DEBIT <key> <max_burst> <count_per_period> <period> <quantity>"},
	} {
		_, _, err := rows(t, tt.in, tt.options)
		checkError(t, err, "replay: "+tt.want)
	}
}
