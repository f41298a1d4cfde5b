package often

import (
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	var c Counter
	nowNs := int64(0)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{
		{0, 1}, {0, 0}, {time.Second, 0}, {58 * time.Second, 0}, {time.Second, 4}, {0, 0}, {time.Hour, 2}, {interval, 1},
	} {
		nowNs += int64(step.after)
		if got := c.Due(nowNs); got != step.want {
			t.Errorf("%s after the one before: got %d, want %d", step.after, got, step.want)
		}
	}
}
