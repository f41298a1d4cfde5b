package dashboard

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
)

func TestQuantities(t *testing.T) {
	for _, tt := range []struct {
		q    quantity
		v    float64
		want string
	}{
		{count, 0, "0"}, {count, 999, "999"}, {count, 1234567, "1,234,567"}, {count, -1234, "-1,234"},
		{rate, 0, "0"}, {rate, 0.25, "0.25"}, {rate, 12.345, "12.3"}, {rate, 99.95, "100.0"}, {rate, 123456.7, "123,457"},
		{durationNs, 83, "83 ns"}, {durationNs, 1500, "1.50 µs"}, {durationNs, 2e6, "2 ms"}, {durationNs, 90e9, "90 s"},
		{byteCount, 512, "512 B"}, {byteCount, 6.25 * (1 << 20), "6.25 MiB"}, {byteCount, 3 << 30, "3 GiB"},
	} {
		if got := strings.ReplaceAll(tt.q.text(tt.v), "\u00a0", " "); got != tt.want {
			t.Errorf("%g is written %q, want %q", tt.v, got, tt.want)
		}
	}
	for ns, want := range map[uint64]string{1_500_000: "1.50 ms", 2e9: "2 s", 61e9: "1m1s", 7200e9: "2h0m0s", 1 << 62: "1281023h53m38s"} {
		if got := strings.ReplaceAll(waitText(ns), "\u00a0", " "); got != want {
			t.Errorf("%d ns is written %q, want %q", ns, got, want)
		}
	}
}

func TestMinutes(t *testing.T) {
	var points []point
	for i := range 75 { // two and a half minutes
		points = append(points, point{atNs: int64(i) * int64(sampleInterval), allowed: float64(i), keys: i})
	}
	got := newMinuteViews(points)
	if len(got) != 3 {
		t.Fatalf("%d minutes, want 3", len(got))
	}
	for i, want := range []minuteView{
		{Ago: 1, Allowed: "59.5", Keys: "74"}, {Ago: 2, Allowed: "29.5", Keys: "44"}, {Ago: 3, Allowed: "7", Keys: "14"},
	} {
		if got[i].Ago != want.Ago || got[i].Allowed != want.Allowed || got[i].Keys != want.Keys || got[i].P99 != "–" {
			t.Errorf("minute %d: %+v, want %+v", i, got[i], want)
		}
	}
	suspended := newMinuteViews([]point{{atNs: 0, keys: 1}, {atNs: int64(5*time.Minute + time.Second), keys: 2}})
	if len(suspended) != 2 || suspended[0].Ago != 1 || suspended[1].Ago != 6 || suspended[1].Keys != "1" {
		t.Errorf("with a gap: %+v", suspended)
	}
	if len(newMinuteViews(nil)) != 0 {
		t.Error("no points make a minute")
	}
}

// line is a chart of one line that leaves out negative values.
func line() chart {
	return chart{quantity: count, least: 1, series: []series{{ink: inkFirst, value: func(p *point) (float64, bool) {
		return p.allowed, p.allowed >= 0
	}}}}
}

func TestChart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rates []float64 // negative for no value
		lines int
	}{
		{"nothing", nil, 0},
		{"one point", []float64{1}, 1},
		{"a line", []float64{1, 2, 3}, 1},
		{"a gap", []float64{1, 2, -1, 3, 4}, 2},
		{"only a gap", []float64{-1, -1}, 0},
		{"huge", []float64{1e18, 0}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var points []point
			for i, v := range tt.rates {
				points = append(points, point{atNs: int64(i) * int64(30*time.Second), allowed: v})
			}
			c := line()
			svg, err := c.draw(points)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(svg), `class="stroke first"`); got != tt.lines {
				t.Errorf("%d lines, want %d:\n%s", got, tt.lines, svg)
			}
			if s := string(svg); strings.Contains(s, "NaN") || strings.Contains(s, "Inf") || !strings.Contains(s, "−30\u00a0s") {
				t.Errorf("bad figures or no marks in\n%s", s)
			}
		})
	}
}

func TestChartMarks(t *testing.T) {
	for _, tt := range []struct {
		span time.Duration
		want string
	}{
		{time.Minute, "0 −30 s −1 min"},
		{2 * time.Minute, "0 −30 s −1 min −90 s −2 min"},
		{6 * time.Minute, "0 −2 min −4 min −6 min"},
		{historySpan - sampleInterval, "0 −5 min −10 min −15 min"},
	} {
		var labels []string
		for _, tick := range timeTicks(-tt.span.Seconds(), 0) {
			labels = append(labels, strings.ReplaceAll(tick.Label, "\u00a0", " "))
			if tick.Value < -tt.span.Seconds() {
				t.Errorf("%s: the mark %q is beyond the axis", tt.span, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.span, got, tt.want)
		}
	}
}

// TestLogarithmicAxis: durations of different magnitudes are all visible.
func TestLogarithmicAxis(t *testing.T) {
	mark := regexp.MustCompile(`<text text-anchor="end"[^>]*>([^<]*)<`)
	for _, tt := range []struct {
		name   string
		values []float64
		want   string
	}{
		{"nothing", nil, "1 µs 10 µs"},
		{"one", []float64{3000}, "1 µs 10 µs"},
		{"far apart", []float64{3000, 17e6}, "1 µs 10 µs 100 µs 1 ms 10 ms 100 ms"},
		{"short", []float64{20, 900}, "10 ns 100 ns 1 µs"},
		{"none at all", []float64{0, 1000}, "1 ns 10 ns 100 ns 1 µs"},
		{"powers", []float64{1000, 1e6}, "1 µs 10 µs 100 µs 1 ms"},
	} {
		c := line()
		c.quantity, c.least, c.logarithmic = durationNs, 1000, true
		var points []point
		for i, v := range tt.values {
			points = append(points, point{atNs: int64(i) * int64(sampleInterval), allowed: v})
		}
		svg, err := c.draw(points)
		if err != nil {
			t.Fatal(err)
		}
		var marks []string
		for _, m := range mark.FindAllStringSubmatch(strings.ReplaceAll(string(svg), "\u00a0", " "), -1) {
			marks = append(marks, m[1])
		}
		if got := strings.Join(marks, " "); got != tt.want || strings.Contains(string(svg), "NaN") {
			t.Errorf("%s: the marks are %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestCanvasRefuses(t *testing.T) {
	for name, do := range map[string]func(c *canvas){
		"rotate":    func(c *canvas) { c.Rotate(1) },
		"translate": func(c *canvas) { c.Translate(vg.Point{}) },
		"scale":     func(c *canvas) { c.Scale(1, 1) },
		"image":     func(c *canvas) { c.DrawImage(vg.Rectangle{}, nil) },
		"arc": func(c *canvas) {
			var p vg.Path
			p.Arc(vg.Point{}, 1, 0, 1)
			c.Fill(p)
		},
	} {
		c := &canvas{}
		if do(c); c.err == nil {
			t.Errorf("%s is drawn, or passed over", name)
		}
	}
}
