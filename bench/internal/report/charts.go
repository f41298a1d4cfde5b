package report

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The file names of the charts.
const (
	ChartCPU     = "cpu.svg"
	ChartLatency = "latency.svg"
	ChartMemory  = "memory.svg"
)

// line is one line of a chart.
type line struct {
	name   string
	xy     plotter.XYs
	colour int // index of plotutil's
	dashes int // index of plotutil's
}

// axes describes a chart's axes.
type axes struct {
	x, y  string
	logX  bool
	logY  bool
	zeroY bool
	ticks []float64 // of x; nil for the defaults
}

// Charts writes the charts for which there are results into dir.
func (r *Results) Charts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: charts: %w", err)
	}
	for _, c := range []struct {
		file, title string
		axes        axes
		lines       []line
	}{
		{ChartCPU, "CPU time of the server per request", axes{x: "pipeline depth", y: "microseconds", logX: true, logY: true, ticks: []float64{1, 16, 128}}, r.cpuLines()},
		{ChartLatency, "Latency at fixed rates", axes{x: "requests per second", y: "microseconds", logX: true, logY: true, ticks: r.rates()}, r.latencyLines()},
		{ChartMemory, "Resident bytes per live key", axes{x: "million keys", y: "bytes", zeroY: true}, r.memoryLines()},
	} {
		if len(c.lines) == 0 {
			continue
		}
		if err := drawChart(filepath.Join(dir, c.file), c.title, c.axes, c.lines); err != nil {
			return fmt.Errorf("report: chart %s: %w", c.file, err)
		}
	}
	if err := r.overview(dir); err != nil {
		return fmt.Errorf("report: chart %s: %w", ChartOverview, err)
	}
	return nil
}

func (r *Results) cpuLines() (lines []line) {
	for _, p := range r.Points {
		if p.Scenario != "pipelined" || len(p.Rounds) == 0 {
			continue
		}
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == p.Peer })
		if i < 0 {
			i = len(lines)
			lines = append(lines, line{name: p.Peer, colour: i, dashes: i / len(plotutil.DefaultColors)})
		}
		lines[i].xy = append(lines[i].xy, plotter.XY{X: float64(p.Pipeline), Y: p.Of(CPU).Median / us})
	}
	return lines
}

func (r *Results) latencyLines() (lines []line) {
	var peers []string
	for _, p := range r.Points {
		if p.Scenario != "fixed-rate" || len(p.Rounds) == 0 {
			continue
		}
		if !slices.Contains(peers, p.Peer) {
			peers = append(peers, p.Peer)
		}
		for i, percentile := range []struct {
			name string
			of   func(Sample) float64
		}{{"p50", P50}, {"p99", P99}, {"p99.9", P999}} {
			name := p.Peer + " " + percentile.name
			at := slices.IndexFunc(lines, func(l line) bool { return l.name == name })
			if at < 0 {
				at = len(lines)
				lines = append(lines, line{name: name, colour: slices.Index(peers, p.Peer), dashes: i})
			}
			lines[at].xy = append(lines[at].xy, plotter.XY{X: p.Rate, Y: p.Of(percentile.of).Median / us})
		}
	}
	return lines
}

func (r *Results) rates() (rates []float64) {
	for _, p := range r.Points {
		if p.Scenario == "fixed-rate" && !slices.Contains(rates, p.Rate) {
			rates = append(rates, p.Rate)
		}
	}
	return rates
}

func (r *Results) memoryLines() (lines []line) {
	for i, g := range r.Memory {
		l := line{name: fmt.Sprintf("%s, %d bytes", g.Peer, g.KeyBytes), colour: i}
		for j, keys := range g.Keys {
			if keys >= 0.5e6 { // below, the empty server dominates
				l.xy = append(l.xy, plotter.XY{X: keys / 1e6, Y: g.RSS[j] / keys})
			}
		}
		if len(l.xy) > 0 {
			lines = append(lines, l)
		}
	}
	return lines
}

func drawChart(file, title string, a axes, lines []line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, a.x, a.y
	p.BackgroundColor = color.White
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	p.Add(plotter.NewGrid())
	for _, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.xy)
		if err != nil {
			return err
		}
		drawn.Color, points.Color = plotutil.Color(l.colour), plotutil.Color(l.colour)
		drawn.Dashes, drawn.Width = plotutil.Dashes(l.dashes), vg.Points(1.5)
		points.Shape, points.Radius = draw.CircleGlyph{}, vg.Points(2)
		p.Add(drawn, points)
		legend.Add(l.name, drawn)
	}
	if a.zeroY {
		p.Y.Min = 0
	}
	if a.logX {
		p.X.Scale = plot.LogScale{}
	}
	if a.logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(logTicks(p.Y.Min, p.Y.Max))
	}
	if a.ticks != nil {
		p.X.Tick.Marker = plot.ConstantTicks(named(a.ticks))
	}
	canvas := vgsvg.New(18*vg.Centimeter, 11*vg.Centimeter)
	c := draw.New(canvas)
	// The legend is next to the data, where it hides none, with room for wider fonts in browsers.
	legendWidth := legend.Rectangle(c).Size().X * 3 / 2
	p.Draw(draw.Crop(c, vg.Points(4), -legendWidth, vg.Points(4), -vg.Points(4)))
	legend.Draw(draw.Crop(c, c.Size().X-legendWidth+vg.Points(8), 0, 0, -vg.Points(20)))
	return write(file, canvas)
}

func write(file string, canvas *vgsvg.Canvas) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// logTicks returns 1, 2 and 5 times each power of ten between least and most.
func logTicks(least, most float64) []plot.Tick {
	var values []float64
	for power := math.Floor(math.Log10(least)); power <= math.Ceil(math.Log10(most)); power++ {
		for _, digit := range []float64{1, 2, 5} {
			values = append(values, digit*math.Pow(10, power))
		}
	}
	return named(values)
}

func named(values []float64) (ticks []plot.Tick) {
	for _, v := range values {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	return ticks
}
