package picture

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	barWidth = time.Second / 2
	lookedAt = time.Second / 10
	mostHigh = 16
)

// TraceFile is the name of the trace's file.
const TraceFile = "trace.csv"

// theme is the colours of a picture. Only allowed requests are filled, for readers who see no colours.
type theme struct{ paper, ink, grid, allowed, limited, level color.Color }

// themes maps the end of a file's name to its theme.
func themes() map[string]theme {
	rgb := func(hex uint32) color.Color {
		return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
	}
	return map[string]theme{
		".svg":      {rgb(0xffffff), rgb(0x24292f), rgb(0xd8dee4), rgb(0x0969da), rgb(0xbc4c00), rgb(0x1a7f37)},
		"-dark.svg": {rgb(0x0d1117), rgb(0xe6edf3), rgb(0x30363d), rgb(0x4493f8), rgb(0xf0883e), rgb(0x3fb950)},
	}
}

// Write writes the trace, and all pictures in all themes, into dir.
func Write(dir string) error {
	f, err := os.Create(filepath.Join(dir, TraceFile))
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	err = WriteTrace(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	limiters, err := subjects()
	if err != nil {
		return err
	}
	for _, s := range limiters {
		h, err := observe(s)
		if err != nil {
			return fmt.Errorf("picture: %s: %w", s.file, err)
		}
		for ending, th := range themes() {
			if err := h.draw(filepath.Join(dir, s.file+ending), th); err != nil {
				return fmt.Errorf("picture: %w", err)
			}
		}
	}
	return nil
}

// history is the outcome of a trace: requests by the bar of their answer, and the level over time.
type history struct {
	allowed, limited [traceLength / barWidth]int
	level            plotter.XYs
}

// observe lets a limiter decide the trace and records its level.
func observe(s subject) (*history, error) {
	h := &history{}
	look := func(now time.Duration) error {
		level, err := s.level(now)
		if n := len(h.level); n == 0 || h.level[n-1].Y != float64(level) {
			h.level = append(h.level, plotter.XY{X: now.Seconds(), Y: float64(level)})
		}
		return err
	}
	trace := Trace()
	for now := time.Duration(0); now < traceLength; now += lookedAt {
		if err := look(now); err != nil {
			return nil, err
		}
		for ; len(trace) > 0 && trace[0] < now+lookedAt; trace = trace[1:] {
			allowed, wait, err := s.request(trace[0])
			if err != nil {
				return nil, err
			}
			if allowed {
				h.allowed[(trace[0]+wait)/barWidth]++
			} else {
				h.limited[trace[0]/barWidth]++
			}
			if err := look(trace[0]); err != nil {
				return nil, err
			}
		}
	}
	h.level = append(h.level, plotter.XY{X: traceLength.Seconds(), Y: h.level[len(h.level)-1].Y})
	return h, nil
}

func (h *history) draw(file string, th theme) error {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, traceLength.Seconds(), 0, mostHigh
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(int(traceLength.Seconds()), 10, " s"), ticks(mostHigh, 5, "")
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color, axis.Tick.Label.Color = th.grid, th.grid, th.ink
		axis.Tick.Label.Font.Variant = "Sans"
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = th.grid, th.grid
	line, err := plotter.NewLine(h.level)
	if err != nil {
		return err
	}
	line.StepStyle, line.Color, line.Width = plotter.PostStep, th.level, vg.Points(1.5)
	p.Add(grid, line)
	var none [traceLength / barWidth]int
	for _, bars := range []struct {
		on, n  *[traceLength / barWidth]int
		colour color.Color
		filled bool
	}{{&none, &h.allowed, th.allowed, true}, {&h.allowed, &h.limited, th.limited, false}} {
		if err := addBars(p, bars.on, bars.n, bars.colour, bars.filled); err != nil {
			return err
		}
	}
	canvas := vgsvg.New(18*vg.Centimeter, 6*vg.Centimeter)
	c := draw.New(canvas)
	c.FillPolygon(th.paper, corners(c.Rectangle))
	p.Draw(draw.Crop(c, vg.Points(4), -vg.Points(16), vg.Points(4), -vg.Points(8)))
	return write(file, canvas)
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}

// addBars draws a bar for each nonzero number, on top of another.
func addBars(p *plot.Plot, on, n *[traceLength / barWidth]int, colour color.Color, filled bool) error {
	var rings []plotter.XYer
	for i := range n {
		if n[i] == 0 {
			continue
		}
		from, low := (time.Duration(i) * barWidth).Seconds(), float64(on[i])
		to, high := from+barWidth.Seconds()*0.7, low+float64(n[i])
		rings = append(rings, plotter.XYs{{X: from, Y: low}, {X: to, Y: low}, {X: to, Y: high}, {X: from, Y: high}})
	}
	if rings == nil {
		return nil
	}
	bars, err := plotter.NewPolygon(rings...)
	if err != nil {
		return err
	}
	bars.LineStyle = draw.LineStyle{Color: colour, Width: vg.Points(1)}
	if filled {
		bars.Color = colour
	}
	p.Add(bars)
	return nil
}

func ticks(last, step int, unit string) plot.ConstantTicks {
	var all []plot.Tick
	for v := 0; v <= last; v += step {
		label := strconv.Itoa(v)
		if v > 0 {
			label += unit
		}
		all = append(all, plot.Tick{Value: float64(v), Label: label})
	}
	return all
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
