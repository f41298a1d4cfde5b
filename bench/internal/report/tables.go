package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Markdown returns the content for a README: the goals, the tables, and the charts, which are in chartDir.
func (r *Results) Markdown(w io.Writer, chartDir string) error {
	var b strings.Builder
	r.head(&b)
	goalTable(&b, r.Goals)
	r.tables(&b, chartDir)
	_, err := io.WriteString(w, b.String())
	return err
}

// Text writes the results for a terminal, with the goals last, where they are seen.
func (r *Results) Text(w io.Writer) error {
	if len(r.Points) == 0 && len(r.Memory) == 0 && len(r.Limiters) == 0 && len(r.Restores) == 0 {
		return nil
	}
	var b strings.Builder
	r.head(&b)
	r.tables(&b, "")
	goalTable(&b, r.Goals)
	_, err := io.WriteString(w, b.String())
	return err
}

// tables writes the tables for which there are results. An empty chartDir omits the charts.
func (r *Results) tables(b *strings.Builder, chartDir string) {
	for _, scenario := range scenarios() {
		points := slices.DeleteFunc(slices.Clone(r.Points), func(p *Point) bool {
			return p.Scenario != scenario.name || len(p.Rounds) == 0 // from a run that failed
		})
		if len(points) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n### %s\n\n%s\n\n", scenario.title, scenario.note)
		scenario.table(b, points)
		chartLink(b, chartDir, scenario.chart, scenario.title)
	}
	if len(r.Memory) > 0 {
		fmt.Fprint(b, "\n### Bytes per key over growth\n\nAll resident memory of the process, divided by its live keys.\n\n")
		growthTable(b, r.Memory)
		chartLink(b, chartDir, ChartMemory, "Bytes per key over growth")
	}
	if len(r.Restores) > 0 {
		fmt.Fprint(b, "\n### Start with a data directory\n\nFrom a snapshot that the system has in memory, until clients are served. "+
			"Resident memory is read ten seconds later.\n\n")
		restoreTable(b, r.Restores)
	}
	if len(r.Limiters) > 0 {
		fmt.Fprint(b, "\n### Limiters as libraries\n\nCalled by one goroutine in a process of its own, with random keys of 16 bytes. "+
			"Memory is the process's growth by the keys; bytes per call are what is allocated.\n\n")
		limiterTable(b, r.Limiters)
	}
}

// pointTable describes the table of a scenario's points.
type pointTable struct {
	name, title, note string
	table             func(*strings.Builder, []*Point)
	chart             string
}

// scenarios returns the tables of points in their order.
func scenarios() []pointTable {
	return []pointTable{
		{"pipelined", "By pipeline depth", "50 connections; each sends this many requests at once and then waits for all replies.", closedTable, ChartCPU},
		{"connections", "By connections", "One request at a time on each connection.", closedTable, ""},
		{"churn", "Keys that come back", "A funnel of 100 beyond the first and 1,000 calls a day, or a minute: then it drains in 60 ms, before the key's next call.", closedTable, ""},
		{"lengths", "By the length of keys", "All calls are allowed, so that each writes, and are for keys that are there.", closedTable, ""},
		{"kinds", "The limiters beside the funnel", "128 pipelined to 10,000 keys, in a server each; every call changes its key.", closedTable, ""},
		{"limits", "Named limits and quotas beside the funnel", "Funnels drain in a day or two, and the quota is of a month in Europe/Berlin. The file has 1,000 limits.", closedTable, ""},
		{"counters", "INCREX beside other counters", "Every call changes its key and is within its bound.", closedTable, ""},
		{"budgets", "Holds over three limits", "Calls for three keys under three names: a token bucket, an approximate window and a quota of a month. Each request is followed " +
			"by the second of its pair, and CPU time is of one of both.", closedTable, ""},
		{"budgets-others", "Other clients beside open holds", "CL.THROTTLE in an open loop, beside 1,000 CL.MRESERVE, CL.MCOMMIT and CL.CHECK a second each to the keys with holds, or to as many without. " +
			"CPU time includes theirs.", openTable, ""},
		{"budgets-bytes", "Bytes of an open hold", "100,000 holds over 1,000 keys that were there before. The first is the growth of resident memory, which " +
			"is partly garbage, and the second that of the tables.", holdTable, ""},
		{"scripts", "Limiters in Lua", "EVALSHA of what libraries send; the first three run without an interpreter.", closedTable, ""},
		{"doors", "HTTP and gRPC", "GET and POST over HTTP/1.1; ShouldRateLimit by grpc-go, where \"pipelined\" are streams of a connection. The controls answer the " +
			"same without a decision. The CPU time of envoyproxy/ratelimit includes its Redis.", closedTable, ""},
		{"doors-half", "HTTP and gRPC at half load", "Open loop at half of the rate that the slowest reaches in a closed loop; latency is measured from when " +
			"a request was due.", openTable, ""},
		{"nginx", "Behind nginx", "auth_request over connections that are kept, in front of a page of 43 bytes, in one process of nginx; each of 50 " +
			"connections waits for its page. The first row asks nobody.", nginxTable, ""},
		{"idle", "Idle connections", "Growth of resident memory per connection that is idle after one request.", idleTable, ""},
		{"tails", "10 million keys compared with 10 thousand", "Open loop at half of the rate that the slower of cellserver and PING reaches in a closed loop; " +
			"latency is measured from when a request was due.", openTable, ""},
		{"hot", "Hot keys", "All calls are allowed, so that each writes.", closedTable, ""},
		{"fixed-rate", "Latency at fixed rates", "Open loop, 50 connections, one request at a time; latency is measured from when a request was due.",
			openTable, ChartLatency},
		{"persist", "With a data directory", "200,000 keys; the control is a second server without a data directory. CPU time includes that of the second " +
			"after the load, in which the last changes are written.", closedTable, ""},
		{"sync", "A sync before each reply", "One request at a time on each connection. All calls are allowed, so that each writes, to the same file system.", closedTable, ""},
		{"snapshot", "During a snapshot of 10 million keys", "Open loop at half of the rate that the server reaches in a closed loop; latency is measured from when " +
			"a request was due. A snapshot is followed by the next as long as the measurement lasts.", openTable, ""},
		{"replica", "A leader with a replica", "200,000 keys; every call changes its key. The control is a second server without a replica. CPU time includes " +
			"that of a fifth of a second after the load, in which the last changes are sent.", closedTable, ""},
		{"remote", "In front of a Redis cluster", "1,000 callers, three masters and three replicas; CPU time and scripts are those of all Redis servers. " +
			"At half load, latency is measured from when a request was due.", remoteTable, ""},
	}
}

func (r *Results) head(b *strings.Builder) {
	m := r.Machine
	fmt.Fprintf(b, "Measured %s in %.0f s: medians of %d rounds of %g s (least..greatest), on %d cores of %s, %.0f GiB, %s, load average before %s. Built with %s.\n",
		r.Started.UTC().Format("2006-01-02 15:04 UTC"), r.Seconds, r.Rounds, r.WindowSeconds, m.Cores, m.CPU, m.MemoryGiB, m.Kernel, m.LoadBefore, m.Go)
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		fmt.Fprintf(b, "\n- %s: %s", name, r.Versions[name])
	}
	for _, line := range r.Skipped {
		fmt.Fprintf(b, "\n- not measured: %s", line)
	}
	fmt.Fprint(b, "\n")
	for _, l := range r.Later {
		fmt.Fprintf(b, "\nMeasured again %s, in %d rounds: %s.\n", l.Started.UTC().Format("2006-01-02 15:04 UTC"), l.Rounds, strings.Join(l.Scenarios, ", "))
		for _, name := range slices.Sorted(maps.Keys(l.Versions)) {
			fmt.Fprintf(b, "\n- %s: %s", name, l.Versions[name])
		}
		fmt.Fprint(b, "\n")
	}
}

func chartLink(b *strings.Builder, dir, file, title string) {
	if dir != "" && file != "" {
		fmt.Fprintf(b, "\n![%s](%s/%s)\n", title, dir, file)
	}
}

func goalTable(b *strings.Builder, goals []Goal) {
	if len(goals) == 0 {
		return
	}
	rows := [][]string{{"goal", "wanted", "measured", ""}}
	for _, g := range goals {
		measured := g.Got.String()
		if g.Why != "" {
			measured = g.Why
		}
		rows = append(rows, []string{g.Text, g.Wanted(), measured, g.Outcome()})
	}
	fmt.Fprint(b, "\n")
	table(b, rows)
}

const (
	us = 1e3 // nanoseconds
	k  = 1e3
)

func closedTable(b *strings.Builder, points []*Point) {
	rows := [][]string{{"", "connections", "pipelined", "keys", "thousand/s", "CPU us/request", "p50 us", "p99 us", "p99.9 us", "limited", "RSS MiB"}}
	for _, p := range points {
		rows = append(rows, []string{
			p.Peer, strconv.Itoa(p.Conns), strconv.Itoa(p.Pipeline), strconv.Itoa(p.Keys) + " " + p.Dist,
			p.Of(Rate).In(k).String(), p.Of(CPU).In(us).String(),
			p.Of(P50).In(us).String(), p.Of(P99).In(us).String(), p.Of(P999).In(us).String(),
			percent(p.Of(func(s Sample) float64 { return s.Limited }).Median), digits(p.Of(RSS).Median / (1 << 20)),
		})
	}
	table(b, rows)
}

func openTable(b *strings.Builder, points []*Point) {
	rows := [][]string{{"", "pipelined", "keys", "rate/s", "CPU us/request", "p50 us", "p99 us", "p99.9 us", "generator late, p99 us"}}
	for _, p := range points {
		rows = append(rows, []string{
			p.Peer, strconv.Itoa(p.Pipeline), strconv.Itoa(p.Keys), strconv.FormatFloat(p.Rate, 'f', 0, 64),
			p.Of(CPU).In(us).String(), p.Of(P50).In(us).String(), p.Of(P99).In(us).String(), p.Of(P999).In(us).String(),
			p.Of(func(s Sample) float64 { return s.LagP99Ns }).In(us).String(),
		})
	}
	table(b, rows)
}

func remoteTable(b *strings.Builder, points []*Point) {
	rows := [][]string{{"", "keys", "thousand/s", "Redis CPU us/decision", "scripts per decision", "p50 us", "p99 us", "p99.9 us", "limited"}}
	for _, p := range points {
		rows = append(rows, []string{
			p.Peer, strconv.Itoa(p.Keys) + " " + p.Dist, p.Of(Rate).In(k).String(), p.Of(CPU).In(us).String(), p.Of(Scripts).String(),
			p.Of(P50).In(us).String(), p.Of(P99).In(us).String(), p.Of(P999).In(us).String(),
			percent(p.Of(func(s Sample) float64 { return s.Limited }).Median),
		})
	}
	table(b, rows)
}

func nginxTable(b *strings.Builder, points []*Point) {
	rows := [][]string{{"asked", "thousand/s", "nginx's CPU us/request", "that of who is asked", "p50 us", "p99 us", "p99.9 us"}}
	for _, p := range points {
		rows = append(rows, []string{
			p.Peer, p.Of(Rate).In(k).String(), p.Of(CPU).In(us).String(), p.Of(LimiterCPU).In(us).String(),
			p.Of(P50).In(us).String(), p.Of(P99).In(us).String(), p.Of(P999).In(us).String(),
		})
	}
	table(b, rows)
}

func idleTable(b *strings.Builder, points []*Point) {
	rows := [][]string{{"", "connections", "bytes per connection"}}
	for _, p := range points {
		rows = append(rows, []string{p.Peer, strconv.Itoa(p.Conns), strconv.FormatFloat(p.Of(RSS).Median, 'f', 0, 64)})
	}
	table(b, rows)
}

func holdTable(b *strings.Builder, points []*Point) {
	rows := [][]string{{"on", "resident bytes per hold", "bytes of tables per hold"}}
	for _, p := range points {
		rows = append(rows, []string{p.Peer, digits(p.Of(RSS).Median), digits(p.Of(func(s Sample) float64 { return s.TableBytes }).Median)})
	}
	table(b, rows)
}

func growthTable(b *strings.Builder, all []*Growth) {
	rows := [][]string{{"", "bytes of a key", "million keys", "bytes per key at the end", "mean from 1 million on", "worst from 1 million on"}}
	for _, g := range all {
		perKey := g.PerKey(1e6)
		if len(perKey) == 0 {
			continue
		}
		var sum float64
		for _, v := range perKey {
			sum += v
		}
		rows = append(rows, []string{
			g.Peer, strconv.Itoa(g.KeyBytes), digits(g.Keys[len(g.Keys)-1] / 1e6), digits(perKey[len(perKey)-1]),
			digits(sum / float64(len(perKey))), digits(slices.Max(perKey)),
		})
	}
	table(b, rows)
}

func limiterTable(b *strings.Builder, limiters []Limiter) {
	sorted := slices.SortedStableFunc(slices.Values(limiters), func(x, y Limiter) int { return cmp.Compare(x.Keys, y.Keys) })
	rows := [][]string{{"", "keys", "ns per call", "bytes per call", "bytes per key"}}
	for _, l := range sorted {
		rows = append(rows, []string{l.Name, strconv.Itoa(l.Keys), NewSpread(l.NsPerOp).String(), strconv.FormatFloat(l.BytesPerOp, 'f', 0, 64), digits(l.BytesPerKey)})
	}
	table(b, rows)
}

func restoreTable(b *strings.Builder, all []Restore) {
	rows := [][]string{{"bytes of a key", "million keys", "bytes of files per key", "seconds", "CPU seconds", "peak MiB", "resident MiB", "peak by resident"}}
	for _, r := range all {
		rows = append(rows, []string{
			strconv.Itoa(r.KeyBytes), digits(float64(r.Keys) / 1e6), digits(r.FilePerKey()), NewSpread(r.Seconds).String(), NewSpread(r.CPU).String(),
			NewSpread(r.Peak).In(1 << 20).String(), NewSpread(r.RSS).In(1 << 20).String(), NewSpread(r.PeakPerRSS()).String(),
		})
	}
	table(b, rows)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + " %" }

// table writes rows, the first of which is the header, with aligned columns so that the source is readable.
func table(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)), 3)
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			fmt.Fprintf(b, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		fmt.Fprint(b, "|\n")
	}
	line(rows[0])
	for _, width := range widths {
		fmt.Fprintf(b, "| %s ", strings.Repeat("-", width))
	}
	fmt.Fprint(b, "|\n")
	for _, row := range rows[1:] {
		line(row)
	}
}
