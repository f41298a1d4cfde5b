package admin

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/store"
)

// TestInfoLoading shows a start's progress in Redis's fields.
func TestInfoLoading(t *testing.T) {
	const sec = int64(time.Second)
	for _, tt := range []struct {
		total, loaded int64
		want          string
	}{
		{0, 0, "0 0 0.00 1"},
		{400, 0, "400 0 0.00 1"},
		{400, 100, "400 100 25.00 30"},
		{400, 400, "400 400 100.00 0"},
		{400, 500, "400 400 100.00 0"}, // a file was read twice
	} {
		text := &infoText{nowNs: 110 * sec}
		infoLoading(text, store.Durability{LoadBeganNs: 100 * sec, LoadBytes: tt.total, LoadedBytes: tt.loaded})
		var values []string
		for line := range strings.Lines(text.String()) {
			_, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			values = append(values, value)
		}
		if got := strings.Join(values, " "); got != "100 "+tt.want {
			t.Errorf("%d of %d bytes: got %s, want %s", tt.loaded, tt.total, got, tt.want)
		}
	}
}

func TestIntervalText(t *testing.T) {
	for interval, want := range map[time.Duration]string{0: "0s", time.Second: "1s", 10 * time.Millisecond: "10ms", store.NoSync: "no"} {
		if got := intervalText(interval); got != want {
			t.Errorf("%d: got %s, want %s", interval, got, want)
		}
	}
}

func TestHumanBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1 << 10: "1.00K", 1536: "1.50K", 1<<20 - 1<<10: "1023.00K", 1 << 20: "1.00M", 5 << 29: "2.50G",
		1 << 30: "1.00G", 1 << 40: "1.00T", 1 << 50: "1024.00T",
	} {
		if got := humanBytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
