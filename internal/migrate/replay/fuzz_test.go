package replay

import (
	"bytes"
	"encoding/csv"
	"math"
	"testing"
	"time"
)

// FuzzReplay reads any bytes as a trace. The output is a trace with the same answers.
func FuzzReplay(f *testing.F) {
	for _, seed := range []string{
		"at_ns,key,max_burst,count,period,quantity\n1,a,4,1,10,6\n2,b,4,1,10,-1\n",
		"at,key,limited\n1.5,\"a,\"\"b\r\r\n\",1\n1970-01-01T00:00:02Z,,\n",
		"\ufeffat,x,key,count\r\n3,\"\r\n\",a,\r\n1,y\"z,b,2\r\n2,\" \",b,2\r\n",
		"at,key,max_count,period,quantity\n1,a,4,1,10,6\n2,b,4,1,-1\n",
		"at,key,max_count,every,time_zone,start,epoch,debit\n1,a,4,day,Europe/Berlin,06:00,0,1\n2,a,4,HOUR,,,1,\n3,a,1,week,,7,,x\n",
		"key,at_ns\n\"a,1\n\"b,2\nc,9223372036854775807\nd,-9223372036854775808\n",
	} {
		f.Add([]byte(seed), byte(0), false, false, int64(0))
		f.Add([]byte(seed), byte(3), true, true, int64(math.MaxInt64))
		f.Add([]byte(seed), byte(6), true, true, int64(0))
	}
	f.Fuzz(func(t *testing.T, in []byte, algorithm byte, defaults, skipBad bool, windowNs int64) {
		o := Options{Algorithm: Algorithm(Algorithms()[int(algorithm)%len(Algorithms())]), SkipBad: skipBad, ReorderWindow: time.Duration(max(windowNs, 0))}
		if defaults {
			o.MaxBurst, o.Count, o.Period = integer(2), integer(3), integer(5)
			o.Capacity, o.RefillCount, o.MaxCount = integer(2), integer(3), integer(2)
			o.Every, o.Start = "day", "06:00"
		}
		var out bytes.Buffer
		skipped, err := Rows(t.Context(), bytes.NewReader(in), &out, o)
		if out.Len() == 0 {
			return // invalid header
		}
		s, summaryErr := Summarize(t.Context(), bytes.NewReader(in), o)
		if (err == nil) != (summaryErr == nil) || s.Skipped.Rows != skipped.Rows {
			t.Fatalf("rows end in %v with %v, the summary in %v with %v", err, skipped, summaryErr, s.Skipped)
		}
		records, err := csv.NewReader(bytes.NewReader(out.Bytes())).ReadAll()
		if err != nil || int64(len(records)) != 1+s.Allowed+s.Limited {
			t.Fatalf("%d records, %v, for a header and %d rows", len(records), err, s.Allowed+s.Limited)
		}
		if bytes.HasPrefix(out.Bytes(), []byte("\ufeff")) {
			return // the first name begins with a byte order mark, which would be taken for the file's
		}
		var again bytes.Buffer
		if _, err := Rows(t.Context(), bytes.NewReader(out.Bytes()), &again, o); err != nil {
			t.Fatalf("the output does not replay: %v\n%q", err, out.Bytes())
		}
		if !bytes.Equal(again.Bytes(), out.Bytes()) {
			t.Fatalf("replaying the output changes it:\n%q\n%q", out.Bytes(), again.Bytes())
		}
	})
}
