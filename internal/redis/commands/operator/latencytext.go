package operator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
)

func (k handlers) latencyDoctor(c execute.Call, _ [][]byte) error {
	all := k.Records.Latencies.All()
	if k.Records.Slowness.Latency() <= 0 && len(all) == 0 {
		c.Reply().Verbatim("Latency monitoring is off. Turn it on with CONFIG SET latency-monitor-threshold <milliseconds>, " +
			"such as 10, and ask again when the server has been slow.\n")
		return nil
	}
	var b strings.Builder
	nowSec := c.Now() / 1e9
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		report(&b, &v, name, nowSec)
	}
	if b.Len() == 0 {
		b.WriteString("Nothing took as long as latency-monitor-threshold since the start or the last LATENCY RESET.\n")
	}
	c.Reply().Verbatim(b.String())
	return nil
}

// report describes an event, with advice.
func report(b *strings.Builder, v *observe.LatencyEvent, name string, nowSec int64) {
	sum, first, last := int64(0), v.Samples[0], v.Samples[len(v.Samples)-1]
	for _, sample := range v.Samples {
		sum += sample.Ms
	}
	n := int64(len(v.Samples))
	mean := float64(sum) / float64(n)
	deviation := 0.0
	for _, sample := range v.Samples {
		deviation += max(float64(sample.Ms)-mean, mean-float64(sample.Ms)) / float64(n)
	}
	fmt.Fprintf(b, "%s: slow in %d seconds of the last %d; %.0f ms on average, mean deviation %.0f ms, worst ever %d ms, last %d s ago.\n",
		name, n, nowSec-first.UnixSec+1, mean, deviation, v.WorstMs, nowSec-last.UnixSec)
	for _, advice := range latencyAdvice(name) {
		b.WriteString("- " + advice + "\n")
	}
}

func latencyAdvice(event string) []string {
	switch event {
	case "command":
		return []string{
			"SLOWLOG GET shows which commands, and whose. Commands about all keys, such as KEYS and FLUSHALL, and scripts take long; they hold up their own client only.",
			"Scripts are ended after lua-time-limit; CL.THROTTLE does most of what they are used for.",
		}
	case "fast-command":
		return []string{
			"SLOWLOG GET shows which batches. A CL.THROTTLE alone takes microseconds: the machine may lack processors or memory. Look for swapping, CPU limits of the container, and noisy neighbours.",
		}
	case observe.SweepEvent:
		return []string{"Many keys expired at once. The sweep ends after 10 ms and goes on later, and holds one lock for one segment at a time."}
	}
	return nil
}

const graphRows = 4

// latencyGraph is LATENCY GRAPH event: a bar for each sample, with its age beneath.
func (k handlers) latencyGraph(c execute.Call, args [][]byte) error {
	name := string(args[2])
	v, ok := k.Records.Latencies.All()[name]
	if !ok {
		return reply.Error("ERR No samples available for event '" + resp.Printable(args[2]) + "'")
	}
	low, high := v.Samples[0].Ms, v.Samples[0].Ms
	for _, sample := range v.Samples {
		low, high = min(low, sample.Ms), max(high, sample.Ms)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", name, high, low, v.WorstMs, strings.Repeat("-", 80))
	nowSec := c.Now() / 1e9
	columns := make([]string, len(v.Samples))
	for i, sample := range v.Samples {
		columns[i] = bar(sample.Ms, low, high) + " " + age(nowSec-sample.UnixSec)
	}
	writeColumns(&b, columns)
	c.Reply().Verbatim(b.String())
	return nil
}

// bar returns a column from the top down, with three levels a row.
func bar(ms, low, high int64) string {
	const steps = "_o#"
	level := 0
	if high > low {
		level = int((ms - low) * (graphRows*int64(len(steps)) - 1) / (high - low))
	}
	column := []byte(strings.Repeat(" ", graphRows))
	row := graphRows - 1 - level/len(steps)
	column[row] = steps[level%len(steps)]
	for below := row + 1; below < graphRows; below++ {
		column[below] = '#'
	}
	return string(column)
}

// age formats seconds in one unit.
func age(sec int64) string {
	for _, unit := range []struct {
		d      time.Duration
		letter string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := sec / int64(unit.d/time.Second); n > 0 {
			return fmt.Sprint(n, unit.letter)
		}
	}
	return fmt.Sprint(max(sec, 0), "s")
}

// writeColumns writes texts vertically, side by side.
func writeColumns(b *strings.Builder, columns []string) {
	height := 0
	for _, c := range columns {
		height = max(height, len(c))
	}
	for row := range height {
		for _, c := range columns {
			if row < len(c) {
				b.WriteByte(c[row])
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
}
