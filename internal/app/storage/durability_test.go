package storage

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/keep/memory"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// TestEndWhileTheDirectoryIsHeld: a server says at once that another has its data directory, and waits no
// longer for it when it is ended.
func TestEndWhileTheDirectoryIsHeld(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	held, err := disk.OpenOS(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close() //nolint:errcheck // nothing was written
	var log bytes.Buffer
	s := &Storage{options: &settings.Options{DataDir: dir}, log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := s.openDataDir(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the directory ended with %v", err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "level=WARN") || !strings.Contains(text, "dir="+dir) {
		t.Errorf("the log has %q", text)
	}
}

func TestDiskReady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		unready bool
		status  func() store.Durability
		want    error
	}{
		{"nothing is kept", true, nil, nil},
		{"all is well again", true, func() store.Durability { return store.Durability{Faults: 1} }, nil},
		{"a fault", true, func() store.Durability { return store.Durability{Fault: errors.New("no space left on device")} }, errDiskFault},
		{"a fault, without the flag", false, func() store.Durability { return store.Durability{Fault: errors.New("no space left on device")} }, nil},
	} {
		o := &settings.Options{UnreadyOnDiskFault: tt.unready}
		if err := diskReady(o, tt.status); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestMemoryWarnings: one line a crossing, and for what found no room one at once and then one a minute.
func TestMemoryWarnings(t *testing.T) {
	var log bytes.Buffer
	nowNs, evicted, refused := int64(0), uint64(0), uint64(0)
	w := memoryWarnings{
		log: slog.New(slog.NewTextHandler(&log, nil)), now: func() int64 { return nowNs }, bound: memory.NewBound(shard.New(), 0),
		limiters: ofLimiters(&memory.Shortage{}), values: ofValues(&memory.Shortage{}),
	}
	for i, step := range []struct {
		bytes            int
		evicted, refused uint64
		values           store.ValueStats
		after            time.Duration
		want             string
	}{
		{bytes: 74},
		{bytes: 76, want: "bytes=76 of=100 maxmemory=0 policy=volatile-ttl percent=75"},
		{bytes: 77},
		{bytes: 100, evicted: 5, want: "evicted=5 refused=0"},
		{bytes: 100, evicted: 9, after: time.Second},
		{bytes: 100, evicted: 9, after: time.Hour},
		{bytes: 100, evicted: 10, refused: 2, want: "evicted=5 refused=2"},
		{bytes: 100, evicted: 10, refused: 2, after: time.Hour},
		{values: store.ValueStats{Keys: 3, Endless: 2, Bytes: 90}, want: `the memory for values is almost used up" keys=3 endless=2 bytes=90 of=100`},
		{values: store.ValueStats{Bytes: 90, Evicted: 4}, want: `values found no room" keys=0`},
		{values: store.ValueStats{Bytes: 90, Evicted: 5, Refused: 6}, after: time.Minute, want: "evicted=1 refused=6"},
	} {
		nowNs += int64(step.after)
		log.Reset()
		step.values.MaxBytes = 100
		w.look(store.Stats{
			Keys: step.values.Keys, Bytes: step.bytes, MaxBytes: 100, Evicted: max(step.evicted, evicted), Refused: max(step.refused, refused),
			Values: step.values,
		})
		evicted, refused = max(step.evicted, evicted), max(step.refused, refused)
		if got := log.String(); !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("step %s: got %q, want %q", strconv.Itoa(i), got, step.want)
		}
	}
}

func TestSuspensionIsLogged(t *testing.T) {
	t.Parallel()
	for slept, want := range map[time.Duration]string{
		0:                                "",
		time.Hour + 750*time.Microsecond: `level=WARN msg="the machine was suspended; the clock was set forward by that time" for=1h0m0.001s` + "\n",
	} {
		var line bytes.Buffer
		noteSuspension(slog.New(slog.NewTextHandler(&line, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})), slept)
		if line.String() != want {
			t.Errorf("after %s: got %q, want %q", slept, line.String(), want)
		}
	}
}
