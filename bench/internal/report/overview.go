package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ChartOverview is the file of the chart that stands in the project's README, for light pages; that for dark
// ones ends in -dark.svg.
const ChartOverview = "overview.svg"

// overviewDepth is the number of concurrent requests of a connection in the overview, as in a client
// with a few users.
const overviewDepth = 16

// The overview's measures, in pixels.
const (
	overviewWidth = 720
	overviewHead  = 30
	overviewRow   = 24
	overviewBars  = 150 // where they begin
	overviewMost  = 470 // the length of the longest
)

// palette is the colours of an overview.
type palette struct{ paper, ink, faint, ours, others string }

// bar is a peer's.
type bar struct {
	name string
	rate Spread
}

// overview writes a chart of how many calls a second each peer answers; without such results it writes none.
func (r *Results) overview(dir string) error {
	bars := r.overviewPeers()
	if len(bars) == 0 {
		return nil
	}
	for file, p := range map[string]palette{
		ChartOverview: {"#ffffff", "#24292f", "#57606a", "#0969da", "#afb8c1"},
		strings.TrimSuffix(ChartOverview, ".svg") + "-dark.svg": {"#0d1117", "#e6edf3", "#9198a1", "#4493f8", "#484f58"},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(drawOverview(bars, p)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// overviewPeers are those that limit, and SET, in this order.
func (r *Results) overviewPeers() (bars []bar) {
	for _, peer := range []struct{ measured, name string }{
		{"cellserver", "cellserver"}, {"SET", "Redis SET"}, {"redis-cell", "redis-cell"}, {"Lua funnel", "Lua script"}, {"redis_rate", "redis_rate"},
	} {
		for _, p := range r.Points {
			if p.Scenario == "pipelined" && p.Peer == peer.measured && p.Pipeline == overviewDepth && len(p.Rounds) > 0 {
				bars = append(bars, bar{peer.name, p.Of(Rate)})
			}
		}
	}
	return bars
}

// drawOverview draws each peer's median as a bar, and its least and greatest as a line on it.
func drawOverview(bars []bar, p palette) string {
	var most float64
	for _, b := range bars {
		most = max(most, b.rate.Max)
	}
	x := func(rate float64) float64 { return overviewBars + overviewMost*rate/most }
	height := overviewHead + overviewRow*len(bars) + 6
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="14">`+"\n",
		overviewWidth, height)
	fmt.Fprintf(&svg, `<rect width="%d" height="%d" fill="%s"/>`+"\n", overviewWidth, height, p.paper)
	fmt.Fprintf(&svg, `<text x="12" y="20" fill="%s"><tspan font-weight="bold">Calls per second</tspan> <tspan fill="%s">`+
		"50 connections, pipelines of %d; the thin line is least to greatest</tspan></text>\n", p.ink, p.faint, overviewDepth)
	for i, b := range bars {
		y, colour, weight := overviewHead+overviewRow*i, p.others, "normal"
		if i == 0 {
			colour, weight = p.ours, "bold"
		}
		fmt.Fprintf(&svg, `<text x="%d" y="%d" fill="%s" text-anchor="end" font-weight="%s">%s</text>`+"\n", overviewBars-10, y+17, p.ink, weight, b.name)
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%.1f" height="16" fill="%s"/>`+"\n", overviewBars, y+4, x(b.rate.Median)-overviewBars, colour)
		fmt.Fprintf(&svg, `<path d="M%.1f %d H%.1f" stroke="%s"/>`+"\n", x(b.rate.Min), y+12, x(b.rate.Max), p.ink)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%d" fill="%s" font-weight="%s">%s</text>`+"\n", x(b.rate.Max)+8, y+17, p.ink, weight, grouped(b.rate.Median))
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// grouped formats a rate to three significant digits, with commas between thousands.
func grouped(rate float64) string {
	unit := math.Pow(10, max(math.Floor(math.Log10(rate))-2, 0))
	digits := strconv.FormatFloat(math.Round(rate/unit)*unit, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
