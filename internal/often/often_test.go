package often

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counter
		for _, step := range []struct {
			after time.Duration
			want  int
		}{
			{0, 1}, {0, 0}, {time.Second, 0}, {58 * time.Second, 0}, {time.Second, 4}, {0, 0}, {time.Hour, 2}, {interval, 1},
		} {
			time.Sleep(step.after)
			if got := c.Due(); got != step.want {
				t.Errorf("%s after the one before: got %d, want %d", step.after, got, step.want)
			}
		}
	})
}
