package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	chartWidth  vg.Length = 400
	chartHeight vg.Length = 170
	labelSize   vg.Length = 12.5
	lineWidth   vg.Length = 1.8

	inkAxis  ink = "axis"
	inkGrid  ink = "grid"
	inkMarkX ink = "mark-x"
	inkMarkY ink = "mark-y"
)

// chart is one chart without its texts.
type chart struct {
	quantity    quantity
	least       float64 // the value axis reaches at least this value
	logarithmic bool    // whether the value axis is logarithmic
	series      []series
}

type series struct {
	ink   ink
	dash  []vg.Length // distinguishes lines without colours
	area  bool
	value func(p *point) (v float64, ok bool)
}

// draw returns the content of an <svg> of chartWidth by chartHeight. It has no words, so it suits all languages.
func (c *chart) draw(points []point) (template.HTML, error) {
	p := plot.New()
	p.BackgroundColor = nil
	setAxes(p, span(points))
	u := c.setScale(&p.Y, points)
	p.Add(grid())
	for _, s := range c.series {
		if err := s.add(p, points, u); err != nil {
			return "", fmt.Errorf("dashboard: chart: %w", err)
		}
	}
	on := &canvas{width: chartWidth, height: chartHeight}
	p.Draw(draw.New(on))
	if on.err != nil {
		return "", on.err
	}
	return template.HTML(on.svg.String()), nil //nolint:gosec // it consists of numbers and escaped text
}

// span is how far back the time axis reaches: as far as the points, but at least a minute.
func span(points []point) time.Duration {
	if len(points) == 0 {
		return time.Minute
	}
	return max(time.Minute, time.Duration(points[len(points)-1].atNs-points[0].atNs))
}

// setScale sets the value axis's range and ticks, and returns the unit of its values.
func (c *chart) setScale(a *plot.Axis, points []point) unit {
	lowest, most := math.Inf(1), c.least
	for i := range points {
		for _, s := range c.series {
			if v, ok := s.value(&points[i]); ok {
				lowest, most = min(lowest, v), max(most, v)
			}
		}
	}
	u := c.quantity.unitFor(most)
	a.Min, a.Max = 0, most*1.05/u.factor
	mark := func(least, most float64) []plot.Tick { return valueTicks(least, most, u) }
	if c.logarithmic {
		u = unit{factor: 1}
		a.Scale = plot.LogScale{}
		a.Min = math.Pow10(int(math.Floor(math.Log10(max(1, min(lowest, c.least))))))
		a.Max = max(10*a.Min, math.Pow10(int(math.Ceil(math.Log10(most)))))
		mark = c.powerOfTenTicks
	}
	a.Tick.Marker = plot.TickerFunc(mark)
	return u
}

func setAxes(p *plot.Plot, back time.Duration) {
	p.X.Min, p.X.Max = -back.Seconds(), 0
	p.X.Tick.Marker = plot.TickerFunc(timeTicks)
	p.X.Tick.Label.Color, p.Y.Tick.Label.Color = inkMarkX, inkMarkY
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Padding = 0
		a.Color, a.Tick.Color = inkAxis, inkAxis
		a.Tick.Length = 6 // keeps the labels of the two axes apart
		a.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: labelSize}
	}
}

// timeTicks returns ticks at full or half minutes before now. "min" and "s" need no translation.
func timeTicks(least, _ float64) []plot.Tick {
	back := time.Duration(-least * float64(time.Second))
	step := 5 * time.Minute
	switch {
	case back < 3*time.Minute:
		step = 30 * time.Second
	case back < 10*time.Minute:
		step = 2 * time.Minute
	}
	ticks := []plot.Tick{{Value: 0, Label: "0"}}
	// Samples are not exactly an interval apart: that must not lose the last tick.
	for at := step; at <= back+sampleInterval; at += step {
		label := fmt.Sprintf("−%d\u00a0min", at/time.Minute)
		if at%time.Minute != 0 {
			label = fmt.Sprintf("−%d\u00a0s", at/time.Second)
		}
		ticks = append(ticks, plot.Tick{Value: max(least, -at.Seconds()), Label: label})
	}
	return ticks
}

// valueTicks returns plot's own major ticks, with the unit.
func valueTicks(least, most float64, u unit) []plot.Tick {
	var ticks []plot.Tick
	for _, t := range (plot.DefaultTicks{}).Ticks(least, most) {
		if !t.IsMinor() {
			if t.Label = u.label(t.Label); t.Value == 0 {
				t.Label = "0"
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// powerOfTenTicks returns a tick at each power of ten.
func (c *chart) powerOfTenTicks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for v := least; v <= most; v *= 10 {
		ticks = append(ticks, plot.Tick{Value: v, Label: c.quantity.text(v)})
	}
	return ticks
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Width = 0
	g.Horizontal = draw.LineStyle{Color: inkGrid, Width: 0.7}
	return g
}

// add adds the series' lines, which are interrupted where there is no value.
func (s *series) add(p *plot.Plot, points []point, u unit) error {
	var line plotter.XYs
	end := func() error {
		if len(line) == 0 {
			return nil
		}
		if len(line) == 1 { // a line of no length is a dot
			line = append(line, line[0])
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		l.LineStyle = draw.LineStyle{Color: s.ink, Width: lineWidth, Dashes: s.dash}
		if s.area {
			l.FillColor = s.ink
		}
		p.Add(l)
		line = nil
		return nil
	}
	for i := range points {
		v, ok := s.value(&points[i])
		if !ok {
			if err := end(); err != nil {
				return err
			}
			continue
		}
		agoNs := points[len(points)-1].atNs - points[i].atNs
		line = append(line, plotter.XY{X: -float64(agoNs) / 1e9, Y: max(v/u.factor, p.Y.Min)})
	}
	return end()
}
