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

func TestAllow(t *testing.T) {
	var r Rate
	nowNs := int64(0)
	for i, step := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true}, {0, true}, {0, false}, {time.Second - 1, false}, {1, true}, {0, true}, {time.Second / 2, false}, {time.Hour, true},
	} {
		nowNs += int64(step.after)
		if got := r.Allow(nowNs, 2); got != step.want {
			t.Errorf("step %d: got %t", i, got)
		}
	}
}
