package replay

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/funnel"
)

const (
	FixedWindow   Algorithm = "fixedwindow"   // CL.FIXEDWINDOW
	SlidingWindow Algorithm = "slidingwindow" // CL.SLIDINGWINDOW
	ApproxWindow  Algorithm = "approxwindow"  // CL.SLIDINGWINDOW with APPROX
	Bucket        Algorithm = "bucket"        // CL.BUCKET: a negative quantity adds units
)

func TestAlgorithms(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options Options
		in, out string
	}{
		{"a token bucket", Options{Algorithm: TokenBucket},
			"at,key,capacity,refill_count,period\n0,a,2,1,10\n0,a,2,1,10\n0,a,2,1,10\n10,a,2,1,10\n",
			"at,key,capacity,refill_count,period" + results + "\n0,a,2,1,10,0,2,1,-1,10\n0,a,2,1,10,0,2,0,-1,20\n0,a,2,1,10,1,2,0,10,20\n10,a,2,1,10,0,2,0,-1,20\n"},
		{"a token bucket by flags; other columns are copied", Options{Algorithm: TokenBucket, Capacity: integer(1), RefillCount: integer(1), Period: integer(2)},
			"at,key,max_burst,count\n0,a,x,\n",
			"at,key,max_burst,count" + results + "\n0,a,x,,0,1,0,-1,2\n"},
		{"the reading of max_burst is for funnels alone", Options{Algorithm: TokenBucket, Reading: funnel.Capacity, Capacity: integer(1), RefillCount: integer(1), Period: integer(2)},
			"at,key\n0,a\n", "at,key" + results + "\n0,a,0,1,0,-1,2\n"},
		{"a fixed window ends for all at once", Options{Algorithm: FixedWindow},
			"at,key,max_count,period\n0,a,2,10\n9.5,a,2,10\n9.5,a,2,10\n10,a,2,10\n10,a,2,10\n",
			"at,key,max_count,period" + results + "\n0,a,2,10,0,2,1,-1,10\n9.5,a,2,10,0,2,0,-1,1\n9.5,a,2,10,1,2,0,1,1\n10,a,2,10,0,2,1,-1,10\n10,a,2,10,0,2,0,-1,10\n"},
		{"a sliding window lets each go in its time", Options{Algorithm: SlidingWindow, MaxCount: integer(2), Period: integer(10)},
			"at,key\n0,a\n9.5,a\n9.5,a\n10,a\n10,a\n",
			"at,key" + results + "\n0,a,0,2,1,-1,10\n9.5,a,0,2,0,-1,10\n9.5,a,1,2,0,1,10\n10,a,0,2,0,-1,10\n10,a,1,2,0,10,10\n"},
		{"what is denied counts", Options{Algorithm: SlidingWindow, CountDenied: true, MaxCount: integer(1), Period: integer(10)},
			"at,key\n0,a\n5,a\n10,a\n20,a\n",
			"at,key" + results + "\n0,a,0,1,0,-1,10\n5,a,1,1,0,10,10\n10,a,1,1,0,10,10\n20,a,0,1,0,-1,10\n"},
		{"an approximate window counts a share", Options{Algorithm: ApproxWindow, MaxCount: integer(4), Period: integer(10)},
			"at,key,quantity\n0,a,4\n15,a,2\n15,a,1\n",
			"at,key,quantity" + results + "\n0,a,4,0,4,0,-1,20\n15,a,2,0,4,0,-1,15\n15,a,1,1,4,0,3,15\n"},
		{"a bucket is filled by negative quantities", Options{Algorithm: Bucket},
			"at,key,capacity,quantity\n0,a,5,1\n0,a,5,-9\n1,a,5,3\n1,a,5,3\n2,a,5,-1\n2,a,5,3\n",
			"at,key,capacity,quantity" + results + "\n0,a,5,1,1,5,0,-1,-1\n0,a,5,-9,0,5,5,-1,-1\n1,a,5,3,0,5,2,-1,-1\n1,a,5,3,1,5,2,-1,-1\n2,a,5,-1,0,5,3,-1,-1\n2,a,5,3,0,5,0,-1,-1\n"},
		{"milliseconds", Options{Milliseconds: true, MaxBurst: integer(0), Count: integer(1), Period: integer(1500)},
			"at,key\n0,a\n0.0001,a\n", "at,key" + results + "\n0,a,0,1,0,-1,1500\n0.0001,a,1,1,0,1500,1500\n"},
		{"a window in milliseconds", Options{Algorithm: FixedWindow, Milliseconds: true, MaxCount: integer(1), Period: integer(1500)},
			"at,key\n0,a\n0.0001,a\n1.5,a\n", "at,key" + results + "\n0,a,0,1,0,-1,1500\n0.0001,a,1,1,0,1500,1500\n1.5,a,0,1,0,-1,1500\n"},
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

func TestAlgorithmErrors(t *testing.T) {
	for _, tt := range []struct {
		algorithm Algorithm
		in, want  string
	}{
		{TokenBucket, "at,key,capacity,count,period\n", "replay: trace.csv:1: column refill_count is missing: add it to the header or give --refill-count"},
		{TokenBucket, "at,key,refill_count,period\n", "replay: trace.csv:1: column capacity is missing: add it to the header or give --capacity"},
		{TokenBucket, "at,key,capacity,refill_count,period\n0,a,0,1,1\n", "replay: trace.csv:2: capacity must be at least 1, got 0"},
		{TokenBucket, "at,key,capacity,refill_count,period\n0,a,1,-1,1\n", "replay: trace.csv:2: refill_count must be at least 0, got -1"},
		{FixedWindow, "at,key,max_burst,period\n", "replay: trace.csv:1: column max_count is missing: add it to the header or give --max-count"},
		{FixedWindow, "at,key,max_count,period\n0,a,1,0\n", "replay: trace.csv:2: period must be at least 1, got 0"},
		{SlidingWindow, "at,key,max_count\n", "replay: trace.csv:1: column period is missing: add it to the header or give --period"},
		{SlidingWindow, "at,key,max_count,period\n0,a,4096,1\n0,a,4097,1\n", "replay: trace.csv:3: max_count must be at most 4096 for an exact window, got 4097; use --algorithm approxwindow for a larger one"},
		{ApproxWindow, "at,key,max_count,period\n0,a,4097,1\n0,a,,1\n", "replay: trace.csv:3: max_count: the field is empty: fill it in or give --max-count"},
		{Bucket, "at,key\n", "replay: trace.csv:1: column capacity is missing: add it to the header or give --capacity"},
		{Bucket, "at,key,capacity\n0,a,-1\n", "replay: trace.csv:2: capacity must be at least 1, got -1"},
	} {
		_, _, err := rows(t, tt.in, Options{Algorithm: tt.algorithm})
		checkError(t, err, tt.want)
	}
}

// TestTokenBucketMirrorsFunnel: by redis-cell's vectors, a bucket of one unit more answers as the funnel.
func TestTokenBucketMirrorsFunnel(t *testing.T) {
	b, err := os.ReadFile("../../funnel/vectors/throttle_whole_us.csv")
	if err != nil {
		t.Fatal(err)
	}
	header, rest, _ := strings.Cut(string(b), "\n")
	names := strings.Split(header, ",")
	burst := -1
	for i, name := range names {
		switch name {
		case "max_burst":
			names[i], burst = "capacity", i
		case "count":
			names[i] = "refill_count"
		}
	}
	want := strings.Join(names, ",") + "\n"
	for line := range strings.Lines(rest) {
		fields := strings.Split(line, ",")
		n, err := strconv.Atoi(fields[burst])
		if err != nil {
			t.Fatal(err)
		}
		fields[burst] = strconv.Itoa(n + 1)
		want += strings.Join(fields, ",")
	}
	got, _, err := rows(t, want, Options{Algorithm: TokenBucket})
	if err != nil || got != want {
		t.Errorf("the answers differ (%v)", err)
	}
}

// TestSlidingWindowKeepsItsPromise on random traces, as does a funnel with max_burst+count = max_count.
func TestSlidingWindowKeepsItsPromise(t *testing.T) {
	const maxCount, periodNs = 5, 1_000_000_000
	random := rand.New(rand.NewPCG(14, 7))
	for range 20 {
		var in strings.Builder
		in.WriteString("at_ns,key\n")
		for at := int64(0); at < 20*periodNs; at += random.Int64N(periodNs / 4) {
			in.WriteString(strconv.FormatInt(at, 10) + ",a\n")
		}
		for _, o := range []Options{
			{Algorithm: SlidingWindow, MaxCount: integer(maxCount)},
			{MaxBurst: integer(2), Count: integer(maxCount - 2)},
		} {
			o.Period = integer(1)
			out, _, err := rows(t, in.String(), o)
			if err != nil {
				t.Fatal(err)
			}
			if n := maxIn(t, out, periodNs); n > maxCount {
				t.Errorf("%s: %d are allowed in a period, and %d may be", o.Algorithm, n, maxCount)
			}
		}
	}
}

// maxIn returns the largest number of rows allowed within any period.
func maxIn(t *testing.T, out string, periodNs int64) (maxCount int) {
	t.Helper()
	var allowed []int64
	for _, line := range strings.Split(out, "\n")[1:] {
		fields := strings.Split(line, ",")
		if len(fields) < 3 || fields[2] != "0" {
			continue
		}
		at, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, at)
		for allowed[0] <= at-periodNs {
			allowed = allowed[1:]
		}
		maxCount = max(maxCount, len(allowed))
	}
	return maxCount
}
