package storage

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/keep/memory"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// TestMemoryWarnings: one line a crossing, and for what found no room one at once and then one a minute.
func TestMemoryWarnings(t *testing.T) {
	var log bytes.Buffer
	nowNs := int64(0)
	w := memoryWarnings{
		log: slog.New(slog.NewTextHandler(&log, nil)), now: func() int64 { return nowNs }, bound: memory.NewBound(shard.New()),
		short: &memory.Shortage{},
	}
	for i, step := range []struct {
		bytes            int
		evicted, refused uint64
		after            time.Duration
		want             string
	}{
		{bytes: 74},
		{bytes: 76, want: "percent=75 bytes=76 of=100"},
		{bytes: 77},
		{bytes: 100, evicted: 5, want: "evicted=5 refused=0"},
		{bytes: 100, evicted: 9, after: time.Second},
		{bytes: 100, evicted: 9, after: time.Hour},
		{bytes: 100, evicted: 10, refused: 2, want: "evicted=5 refused=2"},
		{bytes: 100, evicted: 10, refused: 2, after: time.Hour},
	} {
		nowNs += int64(step.after)
		log.Reset()
		w.look(store.Stats{Bytes: step.bytes, MaxBytes: 100, Evicted: step.evicted, Refused: step.refused})
		if got := log.String(); !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("step %s: got %q, want %q", strconv.Itoa(i), got, step.want)
		}
	}
}
