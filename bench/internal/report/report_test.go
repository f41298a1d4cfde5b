package report

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
		text   string
	}{
		{nil, Spread{}, "0"},
		{[]float64{3}, Spread{3, 3, 3}, "3.00"},
		{[]float64{9, 1, 5}, Spread{5, 1, 9}, "5.00 (1.00..9.00)"},
		{[]float64{4, 1000, 1, 2}, Spread{3, 1, 1000}, "3.00 (1.00..1000)"},
	} {
		got := NewSpread(c.values)
		if got != c.want || got.String() != c.text {
			t.Errorf("%v: %+v, %q", c.values, got, got)
		}
	}
	if got := (Spread{3000, 1000, 5000}).In(1000); got != (Spread{3, 1, 5}) {
		t.Errorf("got %v", got)
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1234567: "1234567", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.01234: "0.0123", -4.567: "-4.57",
	} {
		if got := digits(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}

func TestGoals(t *testing.T) {
	with := func(g Goal, slack float64) Goal {
		g.Slack = slack
		return g
	}
	for _, c := range []struct {
		goal            Goal
		outcome, wanted string
	}{
		{AtMost("", 0.75, []float64{0.75, 0.1, 3}), Met, "<= 0.750"},
		{AtMost("", 0.75, []float64{0.76}), Missed, "<= 0.750"},
		{with(AtMost("", 0.75, []float64{0.82}), 0.1), Met, "<= 0.750 +10 %"},
		{with(AtMost("", 0.75, []float64{0.83}), 0.1), Missed, "<= 0.750 +10 %"},
		{AtLeast("", 3, []float64{3}), Met, ">= 3.00"},
		{AtLeast("", 3, []float64{2.9}), Missed, ">= 3.00"},
		{with(AtLeast("", 3, []float64{2.75}), 0.1), Met, ">= 3.00 -10 %"},
		{Goal{Bound: 1, Why: "a peer is missing"}, NotMeasured, "<= 1.00"},
	} {
		if c.goal.Outcome() != c.outcome || c.goal.Wanted() != c.wanted {
			t.Errorf("%+v: %s, %s", c.goal, c.goal.Outcome(), c.goal.Wanted())
		}
	}
}

func TestRatioIsOfRounds(t *testing.T) {
	a := &Point{Rounds: []Sample{{CPUNs: 2}, {CPUNs: 30}}}
	b := &Point{Rounds: []Sample{{CPUNs: 4}, {CPUNs: 10}, {CPUNs: 1}}}
	if got := Ratio(a, b, CPU); !reflect.DeepEqual(got, []float64{0.5, 3}) {
		t.Errorf("got %v", got)
	}
}

func TestPerKey(t *testing.T) {
	g := Growth{Keys: []float64{1, 2, 4}, RSS: []float64{100, 120, 160}}
	if got := g.PerKey(2); !reflect.DeepEqual(got, []float64{60, 40}) {
		t.Errorf("got %v", got)
	}
}

// sample returns results with an entry in every table.
func sample() *Results {
	r := &Results{
		Started: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Rounds: 2, WindowSeconds: 1,
		Machine:  Machine{CPU: "a processor", Cores: 2, Kernel: "Linux 6"},
		Versions: map[string]string{"redis-server": "7"},
		Skipped:  []string{"redis-cell: set REDIS_CELL_SO to its file"},
		Memory:   []*Growth{{Peer: "cellserver", KeyBytes: 36, Keys: []float64{1e6, 2e6}, RSS: []float64{50e6, 120e6}}},
		Restores: []Restore{{
			Keys: 1e6, KeyBytes: 16, FileBytes: 30e6, Seconds: []float64{2}, CPU: []float64{3}, Peak: []float64{120 << 20}, RSS: []float64{100 << 20},
		}},
		Limiters: []Limiter{{Name: "throttled", Keys: 10, NsPerOp: []float64{90, 100, 120}, BytesPerOp: 16, BytesPerKey: 200}},
		Goals:    []Goal{AtMost("CPU, by that of SET", 0.95, []float64{0.5, 0.7})},
	}
	for _, s := range scenarios() {
		for _, peer := range []string{"cellserver", "SET"} {
			for _, depth := range []int{1, 16} {
				r.Points = append(r.Points, &Point{
					Scenario: s.name, Peer: peer, Conns: 50, Pipeline: depth, Keys: 100, Dist: "uniform", Rate: 1000 * float64(depth),
					Rounds: []Sample{
						{Rate: 1e5, CPUNs: 8000, P50Ns: 1e5, P99Ns: 2e5, P999Ns: 3e5, Limited: 0.5, RSS: 1 << 20},
						{Rate: 3e5, CPUNs: 6000, P50Ns: 1e5, P99Ns: 2e5, P999Ns: 3e5, Limited: 0.5, RSS: 1 << 20},
					},
				})
			}
		}
	}
	return r
}

func TestJSONKeepsAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results", "latest.json")
	want := sample()
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v", err, got)
	}
}

func TestReadme(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "README.md")
	if err := os.WriteFile(file, []byte("before\n"+beginMarker+"\nold\n"+endMarker+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it changes nothing
		if err := sample().UpdateReadme(file, filepath.Join(dir, "results")); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := os.ReadFile(file)
	text := string(b)
	if !strings.HasPrefix(text, "before\n"+beginMarker+"\n") || !strings.HasSuffix(text, endMarker+"\nafter\n") || strings.Contains(text, "\nold\n") {
		t.Errorf("got %s", text)
	}
	for _, want := range []string{
		"2 cores of a processor", "- not measured: redis-cell: set REDIS_CELL_SO",
		"| CPU, by that of SET | <= 0.950 | 0.600 (0.500..0.700) | met |",
		"| cellserver | 50          | 16        | 100 uniform | 200 (100..300) | 7.00 (6.00..8.00) | 100    | 200    | 300      | 50 %    | 1.00    |",
		"| cellserver | 36             | 2.00         | 60.0                     | 55.0 ", "![By pipeline depth](results/cpu.svg)", "| throttled | 10   | 100 (90.0..120) ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if err := os.WriteFile(file, []byte("no markers"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sample().UpdateReadme(file, dir); err == nil || !strings.Contains(err.Error(), "lacks") {
		t.Errorf("got %v", err)
	}
}

func TestCharts(t *testing.T) {
	dir := t.TempDir()
	if err := sample().Charts(dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{ChartCPU, ChartLatency, ChartMemory, ChartOverview} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(b), "<svg") || !strings.Contains(string(b), "cellserver") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestOverviewIsOfTheLastRun: the chart in the project's README shows the results that are kept.
func TestOverviewIsOfTheLastRun(t *testing.T) {
	const kept = "../../results"
	results, err := Read(filepath.Join(kept, "latest.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := results.overview(dir); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{ChartOverview, "overview-dark.svg"} {
		drawn, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if before, err := os.ReadFile(filepath.Join(kept, file)); err != nil || string(before) != string(drawn) {
			t.Errorf("%s is not what is drawn now: go run . report (%v)", file, err)
		}
	}
}

func TestGrouped(t *testing.T) {
	for rate, want := range map[float64]string{9.6: "10", 999.6: "1,000", 84786.5: "84,800", 1438079.4: "1,440,000"} {
		if got := grouped(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.Kernel == "" || m.Go == "" || m.MemoryGiB <= 0 {
		t.Errorf("got %+v", m)
	}
}

// TestOver: a later run of a scenario takes the place of the earlier results of it, and of no other.
func TestOver(t *testing.T) {
	point := func(scenario string, cpuNs float64) *Point {
		return &Point{Scenario: scenario, Rounds: []Sample{{CPUNs: cpuNs}}}
	}
	goal := func(scenario, text string) Goal { return Goal{Scenario: scenario, Text: text} }
	first := &Results{Rounds: 5, Points: []*Point{point("hot", 1), point("doors", 2)}, Goals: []Goal{goal("doors", "old"), goal("hot", "kept")}}
	second := &Results{Rounds: 3, Points: []*Point{point("doors", 3), point("nginx", 4)}, Goals: []Goal{goal("doors", "new")}}
	third := &Results{Rounds: 1, Points: []*Point{point("doors", 5)}}
	got := third.Over(second.Over(first))
	want := &Results{
		Rounds: 5, Points: []*Point{point("hot", 1), point("nginx", 4), point("doors", 5)}, Goals: []Goal{goal("hot", "kept")},
		Later: []Later{{Rounds: 3, Scenarios: []string{"nginx"}}, {Rounds: 1, Scenarios: []string{"doors"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if len(first.Points) != 2 || len(first.Goals) != 2 || first.Later != nil {
		t.Errorf("the first is changed to %+v", first)
	}
	var text strings.Builder
	if err := got.Text(&text); err != nil || !strings.Contains(text.String(), "in 3 rounds: nginx.\n") {
		t.Errorf("%v: %s", err, text.String())
	}
}
