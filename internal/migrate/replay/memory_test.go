package replay

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
)

// newKeys is a trace with a new key per row, which expires after 1 ms, 1,000 rows later.
func newKeys(rows int64) io.Reader { return &keyTrace{rows: rows} }

type keyTrace struct {
	row, rows int64
	pending   []byte
}

func (k *keyTrace) Read(p []byte) (int, error) {
	if len(k.pending) == 0 {
		if k.row == k.rows {
			return 0, io.EOF
		}
		k.fill()
	}
	n := copy(p, k.pending)
	k.pending = k.pending[n:]
	return n, nil
}

func (k *keyTrace) fill() {
	b := k.pending[:0]
	if k.row == 0 {
		b = append(b, "at_ns,key,max_burst,count,period\n"...)
	}
	for range min(1000, k.rows-k.row) {
		b = strconv.AppendInt(b, k.row*1000, 10)
		b = append(b, ",a key that is too long for a slot "...)
		b = strconv.AppendInt(b, k.row, 10)
		b = append(b, ",0,1000,1\n"...)
		k.row++
	}
	k.pending = b
}

func TestMemoryDoesNotGrowWithTheTrace(t *testing.T) {
	if racetest.Enabled {
		t.Skip("it takes memory and time of its own")
	}
	const rows = 500_000
	const maxHeapBytes = 8 << 20 // a fifth of all keys together
	before := heapBytes()
	for _, window := range []time.Duration{0, time.Millisecond} {
		peak := uint64(0)
		o := Options{ReorderWindow: window, Progress: func(rows, _ int64) {
			if rows%(32*progressRows) == 0 {
				peak = max(peak, heapBytes())
			}
		}}
		if _, err := Rows(t.Context(), newKeys(rows), io.Discard, o); err != nil {
			t.Fatal(err)
		}
		if peak == 0 || peak > before+maxHeapBytes {
			t.Errorf("reorder window %s: the heap grew by %d KB", window, (peak-before)>>10)
		}
	}
}

// TestMassExpiry: the sweep after many keys expire at once leaves almost none of them.
func TestMassExpiry(t *testing.T) {
	const keys = 100_000
	var in strings.Builder
	in.WriteString("at,key,max_burst,count,period\n")
	for i := range keys {
		fmt.Fprintf(&in, "0,%d,0,1,10\n", i)
	}
	in.WriteString(strings.Repeat("11,a,0,1,10\n", sweepRows))
	trace, err := open(strings.NewReader(in.String()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlayer(trace, newSummary(), Options{})
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var st store.Stats
	p.store.UpdateStats(&st)
	if st.Keys > keys/1000 {
		t.Errorf("%d of %d expired keys are left", st.Keys, keys)
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkRows(b *testing.B) {
	b.ReportAllocs()
	if _, err := Rows(b.Context(), newKeys(int64(b.N)), io.Discard, Options{}); err != nil {
		b.Fatal(err)
	}
}
