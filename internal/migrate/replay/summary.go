package replay

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
)

// limitedCounters is the number of limited keys up to which counts are exact.
const limitedCounters = 10_000

// Summary holds the totals of a trace.
type Summary struct {
	Allowed, Limited int64
	FirstNs, LastNs  int64 // Unix times of the first and last row
	Skipped          Skipped

	limited *topkeys.Sketch
}

func newSummary() *Summary { return &Summary{limited: topkeys.NewSketch(limitedCounters, 0)} }

func (s *Summary) header([]string) error { return nil }

func (s *Summary) end(skipped Skipped, _ bool) error {
	s.Skipped = skipped
	return nil
}

func (s *Summary) row(r *row, result funnel.Result) error {
	if s.Allowed+s.Limited == 0 {
		s.FirstNs = r.atNs
	}
	s.LastNs = r.atNs
	if result.Limited {
		s.Limited++
		s.limited.Add([]byte(r.key), 1, limiter.Terms{})
	} else {
		s.Allowed++
	}
	return nil
}

// Nothing returns why no row was answered, and what to do, or "" if one was.
func (s *Summary) Nothing() string {
	switch {
	case s.Allowed+s.Limited > 0:
		return ""
	case s.Skipped.Rows > 0:
		return "all rows were skipped as bad; correct them, or give the trace's --format"
	case s.Skipped.Calls > 0:
		return "all calls are of limiters that no trace can decide; see cellserver replay --help"
	}
	return "the trace has no request; of MONITOR's lines only calls of limiters are replayed"
}

// LimitedShare returns the share of limited rows, from 0 to 1; there must be rows.
func (s *Summary) LimitedShare() float64 { return float64(s.Limited) / float64(s.Allowed+s.Limited) }

// MostLimited returns up to n of the most limited keys, with how often they were limited.
func (s *Summary) MostLimited(n int) []topkeys.Hitter { return s.limited.Top(n) }

// Print writes the summary as aligned text with up to top of the most limited keys.
func (s *Summary) Print(out io.Writer, top int) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, err := w.Write(s.appendTop(s.appendTotals(nil), top))
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return fmt.Errorf("replay: write summary: %w", err)
	}
	return nil
}

func (s *Summary) appendTotals(b []byte) []byte {
	rows := s.Allowed + s.Limited
	b = fmt.Appendf(b, "rows\t%d\nallowed\t%d\nlimited\t%d\n", rows, s.Allowed, s.Limited)
	if rows > 0 {
		first, last := time.Unix(0, s.FirstNs).UTC(), time.Unix(0, s.LastNs).UTC()
		b = fmt.Appendf(b, "limited share\t%.2f %%\n", 100*s.LimitedShare())
		b = fmt.Appendf(b, "first\t%s\n", first.Format(time.RFC3339Nano))
		b = fmt.Appendf(b, "last\t%s\n", last.Format(time.RFC3339Nano))
		b = fmt.Appendf(b, "time span\t%s\n", last.Sub(first))
	}
	return fmt.Appendf(b, "skipped rows\t%d\n", s.Skipped.Rows)
}

func (s *Summary) appendTop(b []byte, top int) []byte {
	counters := s.MostLimited(top)
	if len(counters) == 0 {
		return b
	}
	b = append(b, "\nmost limited keys\n"...) // a line without a tab separates the alignment
	for _, c := range counters {
		note := ""
		if c.Overcount > 0 {
			note = fmt.Sprintf(" (at most %.0f too high)", c.Overcount)
		}
		b = fmt.Appendf(b, "%.0f%s\t%s\n", c.Count, note, onOneLine(c.Key))
	}
	return b
}

// onOneLine quotes a key that does not fit on one line as is, or looks quoted.
func onOneLine(key string) string {
	quoted := strconv.Quote(key)
	if key == "" || strings.TrimSpace(key) != key || quoted[1:len(quoted)-1] != key {
		return quoted
	}
	return key
}
