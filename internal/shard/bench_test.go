package shard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// picker makes keys from numbers in random order without cache misses of its own.
type picker struct {
	state uint64
	keys  uint64
}

func (p *picker) next() uint64 {
	p.state = p.state*6364136223846793005 + 1442695040888963407
	hi, _ := bits.Mul64(p.state, p.keys)
	return hi
}

// newNames returns names that differ only at their ends.
func newNames(n, keyBytes int) [][]byte {
	names := make([][]byte, n)
	for i := range names {
		names[i] = bytes.Repeat([]byte("user:key"), (keyBytes+7)/8)[:keyBytes]
	}
	return names
}

func putKey(name []byte, i uint64) { binary.LittleEndian.PutUint64(name[len(name)-8:], i) }

// caller sends batches of picked keys.
type caller struct {
	store *Store
	pick  picker
	now   int64
	batch []store.Request
	names [2][][]byte // alternating: a key is written a call ahead, as off a wire
	turn  int
}

func newCaller(s *Store, keys, keyBytes, batch int, l funnel.Limit) *caller {
	return newRuleCaller(s, keys, keyBytes, batch, limiter.OfFunnel(l))
}

func newRuleCaller(s *Store, keys, keyBytes, batch int, r limiter.Rule) *caller {
	c := &caller{store: s, pick: picker{keys: uint64(keys)}, now: t0, batch: make([]store.Request, batch)}
	for i := range c.names {
		c.names[i] = newNames(batch, keyBytes)
	}
	for i := range c.batch {
		c.batch[i] = store.Request{Rule: r, Quantity: 1}
	}
	return c
}

func (c *caller) call() {
	now, ahead := c.names[c.turn], c.names[1-c.turn]
	for i := range c.batch {
		c.batch[i].Key.Name = now[i]
		putKey(ahead[i], c.pick.next())
	}
	c.turn = 1 - c.turn
	c.now += 1000
	c.store.Throttle(c.now, c.batch)
}

// fillBench stores keys first to n-1, with TATs that do not expire in a benchmark.
func fillBench(tb testing.TB, s *Store, keyBytes, first, n int) {
	fillRules(s, limiter.OfFunnel(limit(tb, 1<<20, 1, 3600)), keyBytes, first, n)
}

// fillRules is fillBench for keys of any kind.
func fillRules(s *Store, r limiter.Rule, keyBytes, first, n int) {
	c := newRuleCaller(s, n, keyBytes, pieceRequests, r)
	for i := first; i < n; {
		c.batch = c.batch[:min(n-i, pieceRequests)]
		for j := range c.batch {
			c.batch[j].Key.Name = c.names[0][j]
			putKey(c.names[0][j], uint64(i))
			i++
		}
		s.Throttle(t0, c.batch)
	}
}

// lineTable is the reference: random cache lines of as many bytes.
type lineTable struct {
	lines [][8]uint64
	state uint64
}

func newLineTable(bytes int) *lineTable {
	t := &lineTable{lines: make([][8]uint64, bytes/64)}
	for i := range t.lines {
		t.lines[i][0] = uint64(i)
	}
	return t
}

// read reads dependent lines.
func (t *lineTable) read(lines int) {
	x, n := t.state, uint64(len(t.lines))
	for range lines {
		x = x*6364136223846793005 + 1442695040888963407
		hi, _ := bits.Mul64(x, n)
		x += t.lines[hi][0]
	}
	t.state = x
}

func (s *Store) tableBytes() (n int) {
	for i := range s.shards {
		for _, t := range s.shards[i].tables() {
			n += t.made*segmentBytes + pointerBytes*len(t.directory)
		}
	}
	return n
}

// benchKeyBytes are lengths of inline keys, and of long ones.
var benchKeyBytes = []int{12, 16, 24, 36, 64}

var benchKeys = []struct {
	name string
	n    int
}{{"10k", 10_000}, {"1M", 1_000_000}, {"10M", 10_000_000}}

func skipLarge(b *testing.B, keys int) {
	if keys > 1_000_000 && testing.Short() {
		b.Skip("needs 1 GB")
	}
}

// BenchmarkThrottle reports ns/op, and lines/op, the number of lines of an equally large table read in a
// request's time, measured alternately. All figures are of the turn at the lower quartile, to ignore
// disturbances.
func BenchmarkThrottle(b *testing.B) {
	for _, keyBytes := range benchKeyBytes {
		for _, k := range benchKeys {
			var s *Store
			var lines *lineTable
			for _, batch := range []int{1, 16, 128} {
				b.Run(fmt.Sprintf("bytes=%d/batch=%d/keys=%s", keyBytes, batch, k.name), func(b *testing.B) {
					skipLarge(b, k.n)
					if s == nil {
						s = New()
						fillBench(b, s, keyBytes, 0, k.n)
						lines = newLineTable(s.tableBytes())
						if k.n == 10_000 {
							lines = nil // the two tables together would not fit into the cache that one fits into
						}
					}
					benchInTurns(b, newCaller(s, k.n, keyBytes, batch, limit(b, 1<<20, 1, 3600)), lines)
				})
			}
		}
	}
}

func benchInTurns(b *testing.B, c *caller, lines *lineTable) {
	const turn = 128 * 100
	var calls, reads []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range turn / len(c.batch) {
			c.call()
		}
		middle := time.Now()
		if lines != nil {
			lines.read(turn)
		}
		calls, reads = append(calls, middle.Sub(start)), append(reads, time.Since(middle))
	}
	call, read := lowerQuartile(calls), lowerQuartile(reads)
	b.ReportMetric(call/turn, "ns/op")
	if lines != nil {
		b.ReportMetric(read/turn, "ns/line")
		b.ReportMetric(call/read, "lines/op")
	}
}

func lowerQuartile(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/4])
}

// BenchmarkInsert creates a key a call, without a bound and with evictions. ns/op is the median of turns.
func BenchmarkInsert(b *testing.B) {
	for _, keyBytes := range []int{16, 36} {
		for _, name := range []string{"unbounded", "evicting"} {
			for _, batch := range []int{1, 16} {
				b.Run(fmt.Sprintf("bytes=%d/%s/batch=%d", keyBytes, name, batch), func(b *testing.B) {
					const keys = 1_000_000
					s := New()
					fillBench(b, s, keyBytes, 0, keys)
					if name == "evicting" {
						var st store.Stats
						s.UpdateStats(&st)
						s.SetMaxBytes(int64(st.Bytes), store.VolatileTTL)
						fillBench(b, s, keyBytes, keys, 3*keys)
					}
					c := newCaller(s, 1<<62, keyBytes, batch, limit(b, 1<<20, 1, 3600))
					b.ReportAllocs()
					b.ResetTimer()
					for i := 0; i < b.N; i += batch {
						c.call()
					}
				})
			}
		}
	}
}

func BenchmarkLineRead(b *testing.B) {
	for _, k := range benchKeys {
		b.Run("table="+k.name, func(b *testing.B) {
			skipLarge(b, k.n)
			lines := newLineTable(43 * k.n)
			b.ResetTimer()
			lines.read(b.N)
		})
	}
}
