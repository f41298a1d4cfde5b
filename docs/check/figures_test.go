package check

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// measured is the README's part of bench/results/latest.json.
type measured struct {
	Started time.Time
	Machine struct {
		CPU   string
		Cores int
	}
	Points []point
	Memory []struct {
		Peer     string
		KeyBytes int       `json:"key_bytes"`
		Keys     []float64 `json:"keys"`
		RSS      []float64 `json:"rss_bytes"`
	}
}

// point is one load on one peer.
type point struct {
	Scenario, Peer string
	Pipeline       int
	Rounds         []struct {
		CPUNs float64 `json:"cpu_ns"`
	}
}

const figuresMarker = "<!-- figures: UPDATE_DOCS=1 go test -run Figures ./docs/check -->\n"

// rate matches the label of a bar.
var rate = regexp.MustCompile(`>([\d,]+)</text>`)

// TestFigures compares the figures of both READMEs with the last measurement, and the text with the chart.
// With UPDATE_DOCS set, it writes the table.
func TestFigures(t *testing.T) {
	var m measured
	if err := json.Unmarshal([]byte(read(t, "bench/results/latest.json")), &m); err != nil {
		t.Fatal(err)
	}
	machine := fmt.Sprintf("%d cores of %s", m.Machine.Cores, m.Machine.CPU)
	y, month, d := m.Started.Date()
	rates := rate.FindAllStringSubmatch(read(t, "bench/results/overview.svg"), -1)
	if len(rates) < 3 {
		t.Errorf("the chart has only the rates %q", rates)
	}
	for document, in := range map[string]struct {
		wants []string
		doors [2]string // the labels of their rows
		floor string    // what says which floor these have
	}{
		"README.md": {
			[]string{m.Started.Format("2 January 2006"), machine},
			[2]string{"server CPU per check over HTTP, one at a time", "server CPU per ShouldRateLimit of Envoy, one at a time"},
			"over HTTP and gRPC it is an empty handler",
		},
		"README.zh-CN.md": {
			[]string{fmt.Sprintf("%d 年 %d 月 %d 日", y, month, d), m.Machine.CPU, fmt.Sprintf("%d 核", m.Machine.Cores)},
			[2]string{"服务器每次 HTTP 检查的 CPU 时间，逐条发送", "服务器每次 ShouldRateLimit（Envoy）的 CPU 时间，逐条发送"},
			"HTTP 和 gRPC 的下限是",
		},
	} {
		wants := in.wants
		text := read(t, document)
		before, rest, ok := strings.Cut(text, figuresMarker)
		if !ok {
			t.Fatalf("%s has no figures", document)
		}
		for _, r := range rates {
			if !strings.Contains(before, " "+r[1]) {
				t.Errorf("%s: the chart's description lacks %s", document, r[1])
			}
		}
		table, after, _ := strings.Cut(rest, "\n\n")
		rows := strings.Split(table, "\n")
		figures := [][]string{m.cpu(t, 1), m.cpu(t, 16), m.cpu(t, 128), append(m.memory(t), "")}
		if doors := m.doors(); doors != nil {
			if len(rows) == 2+len(figures) {
				rows = append(rows, "| "+in.doors[0]+" |", "| "+in.doors[1]+" |")
			}
			figures, wants = append(figures, doors...), append(wants, in.floor)
		}
		if len(rows) != 2+len(figures) {
			t.Fatalf("%s: not %d rows: %q", document, len(figures), rows)
		}
		for i, cells := range figures {
			label, _, _ := strings.Cut(rows[i+2][2:], " |")
			rows[i+2] = "| " + label + " | " + strings.Join(cells, " | ") + " |"
		}
		if now := before + figuresMarker + strings.Join(rows, "\n") + "\n\n" + after; now != text {
			if os.Getenv("UPDATE_DOCS") == "" {
				t.Errorf("%s does not have the figures of the last measurement: %q", document, rows)
			}
			update(t, document, now)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q: when and on what it was measured, or which floor it has", document, want)
			}
		}
	}
}

// figuresOf are the columns; the last has no keys, so no memory.
var figuresOf = []string{"cellserver", "redis-cell", "SET", "C floor"}

// cpu returns the median CPU time of a call in each column.
func (m *measured) cpu(t *testing.T, pipeline int) (cells []string) {
	t.Helper()
	for _, peer := range figuresOf {
		for _, p := range m.Points {
			if p.Scenario == "pipelined" && p.Peer == peer && p.Pipeline == pipeline {
				cells = append(cells, p.cpu()...)
			}
		}
	}
	return complete(t, cells, figuresOf)
}

// cpu returns the median CPU time of a call, of an odd number of rounds.
func (p *point) cpu() []string {
	if len(p.Rounds)%2 == 0 {
		return nil
	}
	var ns []float64
	for _, r := range p.Rounds {
		ns = append(ns, r.CPUNs)
	}
	slices.Sort(ns)
	return []string{threeDigits(ns[len(ns)/2]/1000) + " µs"}
}

// doors returns the rows of HTTP and of Envoy, or nil if they were not measured. A cell says what it is of
// where its column does not.
func (m *measured) doors() [][]string {
	of := func(peer, name string) string {
		for _, p := range m.Points {
			if cells := p.cpu(); p.Scenario == "doors" && p.Peer == peer && p.Pipeline == 1 && cells != nil {
				return strings.TrimSpace(cells[0] + " " + name)
			}
		}
		return ""
	}
	check, call := of("cellserver, GET /v1/check", ""), of("cellserver, ShouldRateLimit", "")
	if check == "" || call == "" {
		return nil
	}
	return [][]string{
		{check, "", "", of("an empty net/http handler", "(net/http)") + ", " + of("an empty fasthttp handler", "(fasthttp)")},
		{call, of("envoyproxy/ratelimit", "(envoyproxy/ratelimit + Redis)"), "", of("an empty grpc-go handler", "(grpc-go)")},
	}
}

// memory returns the bytes a key of a million.
func (m *measured) memory(t *testing.T) (cells []string) {
	t.Helper()
	peers := figuresOf[:len(figuresOf)-1]
	for _, peer := range peers {
		for _, g := range m.Memory {
			if i := slices.Index(g.Keys, 1e6); i >= 0 && g.Peer == peer && g.KeyBytes == 16 {
				cells = append(cells, threeDigits(g.RSS[i]/1e6)+" B")
			}
		}
	}
	return complete(t, cells, peers)
}

func complete(t *testing.T, cells, peers []string) []string {
	t.Helper()
	if len(cells) != len(peers) {
		t.Fatalf("the last measurement lacks some of %q: %q", peers, cells)
	}
	return cells
}

func threeDigits(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
