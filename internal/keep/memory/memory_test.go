package memory

import (
	"cmp"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"cellserver/internal/store"
)

// TestParse: Redis's sizes.
func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "100b": 100, "1k": 1000, "1kb": 1024, "150mb": 150 << 20, "100m": 100_000_000, "2G": 2_000_000_000,
		"2Gb": 2 << 30, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "mb", "-1", "+1", "1.5g", "1 mb", "1tb", "1mbb", "9223372036854775808", "9007199254740993gb", "auto", "10%"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

// TestSplit: the parts add up. Limiters have at least half of what is left for keys, and values have some.
func TestSplit(t *testing.T) {
	for _, maxBytes := range []int64{LeastBytes, 64 * mib, 150 * mib, 600 * mib, 8 << 30, 1 << 50} {
		for _, values := range []string{"0%", "1kb", "5%", "25%", "100%", "900gb"} {
			s := quarters(maxBytes, values).Split()
			if s.sum() != maxBytes {
				t.Errorf("%d is split into %d", maxBytes, s.sum())
			}
			if s.Tables < leastTableBytes || s.Scripts > 64*mib || s.Clients != maxBytes/4 {
				t.Errorf("%d: %+v", maxBytes, s)
			}
			half := max((s.Tables+s.Values+1)/2, leastValueBytes)
			if s.Values < leastValueBytes || s.Values > half {
				t.Errorf("%d, values %s: %d of %d for keys", maxBytes, values, s.Values, s.Tables+s.Values)
			}
			asked := part(values)
			if bytes := asked.Of(maxBytes); s.Tables > leastTableBytes && s.Values != max(min(bytes, half), leastValueBytes) {
				t.Errorf("%d, values %s: %d", maxBytes, values, s.Values)
			}
		}
	}
}

// quarters returns a maximum of which clients have a quarter.
func quarters(maxBytes int64, values string) State {
	return State{MaxBytes: maxBytes, Policy: store.NoEviction, Clients: part("25%"), Values: part(values)}
}

func part(text string) Part {
	p, err := ParsePart(text)
	if err != nil {
		panic(err)
	}
	return p
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		maxBytes int64
		clients  string
		problem  string
	}{
		{0, "25%", ""}, {0, "100%", ""}, {0, "1gb", ""}, {LeastBytes, "25%", ""}, {100 * mib, "0", ""},
		{1, "25%", "at least 48mb"}, {LeastBytes - 1, "25%", "at least 48mb"},
		{LeastBytes, "30%", "less than 4mb for keys: maxmemory is 50331648 bytes and maxmemory-clients 30%"}, {1 << 30, "1gb", "maxmemory-clients 1gb"},
	} {
		err := State{MaxBytes: tt.maxBytes, Clients: part(tt.clients), Values: part("25%")}.Check()
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%d, %s: %v, want %q", tt.maxBytes, tt.clients, err, tt.problem)
		}
	}
	all := State{MaxBytes: LeastBytes, Clients: part("100%"), Values: part("100%")}
	if s := all.Split(); s.Tables != leastTableBytes || s.Values != leastValueBytes {
		t.Errorf("what settings at once leave for keys is %d, and for values %d", s.Tables, s.Values)
	}
}

func TestAuto(t *testing.T) {
	for _, tt := range []struct {
		limit    uint64
		want     int64
		tooSmall bool
	}{
		{1 << 30, 1 << 30 / 100 * 70, false}, {64 * mib, LeastBytes, true}, {math.MaxUint64, math.MaxInt64 / 100 / 100 * 70, false},
	} {
		if got, tooSmall := autoOf(tt.limit); got != tt.want || tooSmall != tt.tooSmall {
			t.Errorf("%d: got %d, %t, want %d, %t", tt.limit, got, tooSmall, tt.want, tt.tooSmall)
		}
	}
}

func TestPolicies(t *testing.T) {
	for _, p := range []store.Policy{store.VolatileTTL, store.NoEviction} {
		if got, err := ParsePolicy(p.String()); got != p || err != nil {
			t.Errorf("%s: got %d, %v", p.String(), got, err)
		}
	}
	for name, want := range map[string]string{"allkeys-lru": "not supported", "": "must be", "Volatile-TTL": "must be"} {
		if _, err := ParsePolicy(name); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "volatile-ttl or noeviction") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

type recorded struct {
	maxBytes, valueBytes int64
	policy               store.Policy
}

func (r *recorded) SetMaxBytes(maxBytes int64, policy store.Policy) {
	r.maxBytes, r.policy = maxBytes, policy
}

func (r *recorded) SetMaxValueBytes(maxBytes int64) { r.valueBytes = maxBytes }

// TestBound: the tables get their part, the collector knows the maximum, and an operator's smaller limit
// stays.
func TestBound(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	debug.SetMemoryLimit(1 << 40)
	r := &recorded{}
	b := NewBound(r, 8<<30)
	clients := int64(-1)
	b.OnClients(func(bytes int64) { clients = bytes })
	if clients != 0 {
		t.Errorf("without a maximum clients may hold %d", clients)
	}
	for _, tt := range []struct{ maxBytes, limit int64 }{{160 * mib, 136 * mib}, {1 << 50, 1 << 40}, {0, 1 << 40}} {
		b.Set(quarters(tt.maxBytes, "25%"))
		if want := cmp.Or(tt.maxBytes, 8<<30) / 4; clients != want || b.ClientBytes() != want {
			t.Errorf("%d: clients may hold %d, want %d", tt.maxBytes, clients, want)
		}
		st := b.State()
		if limit := debug.SetMemoryLimit(-1); limit != tt.limit || st.MaxBytes != tt.maxBytes || r.maxBytes != st.Shares.Tables ||
			r.valueBytes != st.Shares.Values || (st.Shares.Values > 0) != (tt.maxBytes > 0) ||
			r.policy != store.NoEviction || (st.Shares.Tables > 0) != (tt.maxBytes > 0) {
			t.Errorf("%d: the collector's limit is %d, the store's %+v, the state %+v", tt.maxBytes, limit, r, st)
		}
	}
	b.Set(State{Values: part("3mb")})
	if r.valueBytes != 3*mib || r.maxBytes != 0 {
		t.Errorf("a size of values without a maximum: the store's bounds are %+v", r)
	}
	if st := (*Bound)(nil).State(); st != (State{}) {
		t.Errorf("no bound: %+v", st)
	}
}

// TestAvailable: the machine's memory is known, and an operator's smaller limit counts.
func TestAvailable(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	if got := Available(); runtime.GOOS == "linux" && (got < 64*mib || got > 1<<50) {
		t.Errorf("%d bytes", got)
	}
	debug.SetMemoryLimit(64 * mib)
	if got := Available(); got != 64*mib {
		t.Errorf("with GOMEMLIMIT: %d bytes", got)
	}
}

// TestLevel: one warning a crossing.
func TestLevel(t *testing.T) {
	var l Level
	for i, step := range []struct{ used, want int64 }{
		{0, 0}, {74, 0}, {75, 75}, {76, 0}, {74, 0}, {70, 0}, {75, 0}, {69, 0}, {75, 75}, {90, 90}, {86, 0}, {91, 0}, {84, 0}, {90, 90},
		{10, 0}, {100, 90},
	} {
		if got := l.Crossed(step.used, 100); int64(got) != step.want {
			t.Errorf("step %d, at %d: got %d, want %d", i, step.used, got, step.want)
		}
	}
	if got := l.Crossed(5, 0); got != 0 {
		t.Errorf("without a maximum: %d", got)
	}
}

func TestPart(t *testing.T) {
	for _, tt := range []struct {
		text  string
		of    int64
		bytes int64
	}{
		{"0", 1 << 30, 0}, {"100", 0, 100}, {"7b", 0, 7}, {"1k", 0, 1000}, {"1KB", 0, 1024}, {"2m", 0, 2_000_000}, {"64mb", 5, 64 << 20},
		{"1g", 0, 1_000_000_000}, {"1gb", 0, 1 << 30}, {"0%", 1 << 30, 0}, {"25%", 0, 0}, {"25%", 150, 37}, {"100%", 1<<63 - 1, 1<<63 - 1},
	} {
		var m Part
		if err := m.Set(tt.text); err != nil || m.Of(tt.of) != tt.bytes || m.String() != tt.text {
			t.Errorf("%q of %d: %d, %v", tt.text, tt.of, m.Of(tt.of), err)
		}
	}
	for _, text := range []string{"", "x", "-1", "mb", "1tb", "1bk", "101%", "-1%", "%", "1.5gb", "9223372036854775808", "9223372036854775807k"} {
		var m Part
		if err := m.Set(text); err == nil {
			t.Errorf("%q was taken for %d bytes", text, m.Of(0))
		}
	}
}

// TestShortage: a minute after the last evicted or refused key the shortage ends.
func TestShortage(t *testing.T) {
	t.Parallel()
	var s Shortage
	for _, step := range []struct {
		atSec            int64
		evicted, refused uint64 // so far
		more             [2]uint64
		recent           [2]bool
	}{
		{1000, 0, 0, [2]uint64{}, [2]bool{}},
		{1001, 5, 0, [2]uint64{5, 0}, [2]bool{true, false}},
		{1030, 5, 2, [2]uint64{0, 2}, [2]bool{true, true}},
		{1060, 5, 2, [2]uint64{}, [2]bool{true, true}},
		{1061, 5, 2, [2]uint64{}, [2]bool{false, true}},
		{1089, 6, 2, [2]uint64{1, 0}, [2]bool{true, true}},
		{1090, 6, 2, [2]uint64{}, [2]bool{true, false}},
		{1149, 6, 2, [2]uint64{}, [2]bool{}},
	} {
		nowNs := step.atSec * int64(time.Second)
		evicted, refused := s.Note(nowNs, step.evicted, step.refused)
		recentlyEvicted, recentlyRefused := s.Recent(nowNs)
		if got := [2]uint64{evicted, refused}; got != step.more {
			t.Errorf("at %d s: %d more", step.atSec, got)
		}
		if got := [2]bool{recentlyEvicted, recentlyRefused}; got != step.recent {
			t.Errorf("at %d s: recent %t", step.atSec, got)
		}
	}
}
