package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressLineIsWrittenFiveTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		line := &progressLine{out: &out, start: time.Now()}
		for ms := range int64(1000) {
			line.update(1500*ms, 64_000*ms)
			time.Sleep(time.Millisecond)
		}
		var want strings.Builder
		for _, text := range []string{
			"0 rows, 0 rows/s, 0 MB", "300000 rows, 1500000 rows/s, 12 MB", "600000 rows, 1500000 rows/s, 25 MB",
			"900000 rows, 1500000 rows/s, 38 MB", "1200000 rows, 1500000 rows/s, 51 MB",
		} {
			want.WriteString("\r" + text + "\x1b[K")
		}
		if got := out.String(); got != want.String() {
			t.Errorf("got %q, want %q", got, want.String())
		}
	})
}
