package observe

import (
	"fmt"
	"testing"

	"cellserver/internal/wire/catalog"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
	ms  = int64(1_000_000)
)

// TestLatencies keeps the longest duration of each second.
func TestLatencies(t *testing.T) {
	r := New(catalog.New(), t0)
	r.Latency("off", t0, 99*ms)
	r.Slowness.SetLatency(5)
	for _, step := range []struct{ atNs, ns int64 }{
		{0, 5*ms - 1}, {0, 5 * ms}, {sec - 1, 9*ms + 1}, {sec - 1, 7 * ms}, {60 * sec, 20 * ms}, {62 * sec, 14 * ms}, {63 * sec, 5*ms - 1},
	} {
		r.Latency(SweepEvent, t0+step.atNs, step.ns)
	}
	r.Latency("command", t0, 6*ms)
	first := t0 / sec
	want := fmt.Sprintf("map[command:{[{%d 6}] 6} sweep:{[{%d 9} {%d 20} {%d 14}] 20}]", first, first, first+60, first+62)
	if got := fmt.Sprint(r.Latencies.All()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	copied := r.Latencies.All()
	copied["command"].Samples[0].Ms = 99
	if got := r.Latencies.All()["command"].Samples[0].Ms; got != 6 {
		t.Errorf("All returned no copy: %d ms", got)
	}
}

// TestLatencySamplesAreBounded: the oldest are dropped, the longest is kept.
func TestLatencySamplesAreBounded(t *testing.T) {
	var l Latencies
	for i := range int64(latencySamples + 3) {
		l.add("e", LatencySample{UnixSec: i, Ms: 1000 - i})
	}
	v := l.All()["e"]
	if len(v.Samples) != latencySamples || v.Samples[0] != (LatencySample{3, 997}) || v.WorstMs != 1000 {
		t.Errorf("%d samples from %+v, worst %d ms", len(v.Samples), v.Samples[0], v.WorstMs)
	}
}

func TestLatencyReset(t *testing.T) {
	for _, tt := range []struct {
		names []string
		n     int
		left  string
	}{
		{[]string{"a", "nosuch", "a"}, 1, "map[b:{[{1 1}] 1}]"},
		{nil, 2, "map[]"},
		{[]string{"b", "a"}, 2, "map[]"},
	} {
		var l Latencies
		if n := l.Reset(tt.names); n != 0 {
			t.Errorf("%d of no event", n)
		}
		l.add("a", LatencySample{1, 1})
		l.add("b", LatencySample{1, 1})
		if n := l.Reset(tt.names); n != tt.n || fmt.Sprint(l.All()) != tt.left {
			t.Errorf("%q: %d, left %v", tt.names, n, l.All())
		}
	}
}
