// Package report holds the results of measurements, compares them with goals, and writes them as JSON, tables
// and charts. It measures nothing and has no state.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Results is the results of one run.
type Results struct {
	Started  time.Time         `json:"started"`
	Seconds  float64           `json:"seconds"`
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Rounds   int               `json:"rounds"`
	// WindowSeconds is the length of one measurement of a round.
	WindowSeconds float64 `json:"window_seconds"`

	Skipped  []string  `json:"skipped"` // what could not be measured, and why
	Points   []*Point  `json:"points"`
	Memory   []*Growth `json:"memory"`
	Limiters []Limiter `json:"limiters"`
	Restores []Restore `json:"restores"`
	Goals    []Goal    `json:"goals"`

	Later []Later `json:"later,omitempty"`
}

// Later is a later run of some scenarios, whose results are in the place of the first run's.
type Later struct {
	Started   time.Time         `json:"started"`
	Rounds    int               `json:"rounds"`
	Scenarios []string          `json:"scenarios"`
	Versions  map[string]string `json:"versions"`
}

// Over returns earlier results with those of some scenarios in the place of the earlier ones.
func (r *Results) Over(earlier *Results) *Results {
	var again []string
	for _, p := range r.Points {
		again = append(again, p.Scenario)
	}
	slices.Sort(again)
	again = slices.Compact(again)
	all := *earlier
	all.Points = append(slices.DeleteFunc(slices.Clone(earlier.Points), func(p *Point) bool { return slices.Contains(again, p.Scenario) }), r.Points...)
	all.Goals = append(slices.DeleteFunc(slices.Clone(earlier.Goals), func(g Goal) bool { return slices.Contains(again, g.Scenario) }), r.Goals...)
	all.Later = slices.Clone(earlier.Later)
	for i := range all.Later {
		l := &all.Later[i]
		l.Scenarios = slices.DeleteFunc(slices.Clone(l.Scenarios), func(name string) bool { return slices.Contains(again, name) })
	}
	all.Later = slices.DeleteFunc(all.Later, func(l Later) bool { return len(l.Scenarios) == 0 })
	all.Later = append(all.Later, Later{r.Started, r.Rounds, again, r.Versions})
	return &all
}

// Point is one load on one peer, measured once per round.
type Point struct {
	Scenario string   `json:"scenario"`
	Peer     string   `json:"peer"`
	Command  string   `json:"command"`
	Conns    int      `json:"connections"`
	Pipeline int      `json:"pipeline"`
	Keys     int      `json:"keys"`
	Dist     string   `json:"distribution"`
	Rate     float64  `json:"fixed_rate"` // 0 for a closed loop
	Rounds   []Sample `json:"rounds"`
}

// Sample is the result of one measurement.
type Sample struct {
	Rate     float64 `json:"rate"`              // replies per second
	CPUNs    float64 `json:"cpu_ns"`            // of the server, per request
	P50Ns    float64 `json:"p50_ns"`            //
	P99Ns    float64 `json:"p99_ns"`            //
	P999Ns   float64 `json:"p99_9_ns"`          //
	LagP99Ns float64 `json:"lag_p99_ns"`        // how late the generator sent; only in an open loop
	Limited  float64 `json:"denied"`            // share of the replies
	RSS      float64 `json:"rss_bytes"`         // of the server, afterwards
	Scripts  float64 `json:"scripts,omitempty"` // that Redis servers have run, per request
	// LimiterCPUNs is that of the server behind the server.
	LimiterCPUNs float64 `json:"limiter_cpu_ns,omitempty"`
	// TableBytes is the part of RSS in the server's tables, by its own count.
	TableBytes float64 `json:"table_bytes,omitempty"`
}

// Each returns one value per round.
func (p *Point) Each(value func(Sample) float64) []float64 {
	values := make([]float64, len(p.Rounds))
	for i, s := range p.Rounds {
		values[i] = value(s)
	}
	return values
}

// Of returns a value's median and spread over the rounds.
func (p *Point) Of(value func(Sample) float64) Spread { return NewSpread(p.Each(value)) }

// Ratio returns a value of p divided by that of other, round by round, because disturbances affect both.
func Ratio(p, other *Point, value func(Sample) float64) []float64 {
	a, b := p.Each(value), other.Each(value)
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// Rate returns a sample's rate.
func Rate(s Sample) float64 { return s.Rate }

// CPU returns a sample's CPU time in nanoseconds per request.
func CPU(s Sample) float64 { return s.CPUNs }

// LimiterCPU returns the CPU time of the server behind a sample's, in nanoseconds per request.
func LimiterCPU(s Sample) float64 { return s.LimiterCPUNs }

// Scripts returns a sample's scripts per request.
func Scripts(s Sample) float64 { return s.Scripts }

// RSS returns a sample's resident memory in bytes.
func RSS(s Sample) float64 { return s.RSS }

// P50 returns a sample's median latency in nanoseconds.
func P50(s Sample) float64 { return s.P50Ns }

// P99 returns a sample's 99th percentile of latency in nanoseconds.
func P99(s Sample) float64 { return s.P99Ns }

// P999 returns the 99.9th percentile.
func P999(s Sample) float64 { return s.P999Ns }

// Growth is a server's resident memory while it is being filled.
type Growth struct {
	Peer     string    `json:"peer"`
	Command  string    `json:"command"`
	KeyBytes int       `json:"key_bytes"` // of each
	Keys     []float64 `json:"keys"`
	RSS      []float64 `json:"rss_bytes"`
}

// PerKey returns the server's resident bytes divided by its keys, for each sample with at least fromKeys.
func (g *Growth) PerKey(fromKeys float64) (bytes []float64) {
	for i, keys := range g.Keys {
		if keys >= fromKeys {
			bytes = append(bytes, g.RSS[i]/keys)
		}
	}
	return bytes
}

// Restore measures starts with a data directory.
type Restore struct {
	Keys      int       `json:"keys"`
	KeyBytes  int       `json:"key_bytes"`  // of each
	FileBytes int       `json:"file_bytes"` // of all files
	Seconds   []float64 `json:"seconds"`    // until clients were served
	CPU       []float64 `json:"cpu"`        // seconds of the server's CPU time until then
	Peak      []float64 `json:"peak_bytes"` // resident until then, at most
	RSS       []float64 `json:"rss_bytes"`  // some seconds later
}

// PeakPerRSS returns how many times of what was resident afterwards was resident at most.
func (r *Restore) PeakPerRSS() []float64 {
	ratios := make([]float64, len(r.Peak))
	for i := range ratios {
		ratios[i] = r.Peak[i] / r.RSS[i]
	}
	return ratios
}

// FilePerKey returns the bytes of all files divided by the keys.
func (r *Restore) FilePerKey() float64 { return float64(r.FileBytes) / float64(r.Keys) }

// Limiter is the result of a limiter that is a library, called in its own process.
type Limiter struct {
	Name        string    `json:"name"`
	Keys        int       `json:"keys"`
	NsPerOp     []float64 `json:"ns_per_op"`    // of each round
	BytesPerOp  float64   `json:"bytes_per_op"` // allocated
	BytesPerKey float64   `json:"bytes_per_key"`
}

// Write writes the results as JSON, and creates the directory.
func (r *Results) Write(file string) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("report: results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("report: results: %w", err)
	}
	if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("report: results: %w", err)
	}
	return nil
}

// Read reads results written by Write.
func Read(file string) (*Results, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("report: results: %w; create them with bench run -o %s", err, file)
	}
	r := &Results{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("report: results: %s: %w", file, err)
	}
	return r, nil
}
