package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/test/processtest"
)

func TestWatchdogIsFedWhileProbesSucceed(t *testing.T) {
	const interval = 15 * time.Second
	tests := []struct {
		name  string
		hang  time.Duration // of the third probe
		until time.Duration
		feeds int
		late  int // log lines about it
	}{
		{"well", 0, 10*interval + 1, 11, 0},
		{"slow, but within the interval", interval - 1, 10*interval + 1, 11, 0},
		{"hangs for three intervals", 3 * interval, 10*interval + 1, 9, 1},
		{"hangs for good", time.Hour, 10*interval + 1, 2, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.until)
				defer cancel()
				probes, feeds := 0, 0
				log := &processtest.Log{}
				watchdog{
					Interval: interval,
					Probe: func(ctx context.Context) error {
						if probes++; probes != 3 {
							return nil
						}
						select {
						case <-time.After(tt.hang):
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					},
					Feed: func() { feeds++ },
					Log:  slog.New(slog.NewTextHandler(log, nil)),
				}.Run(ctx)
				if late := strings.Count(log.String(), "the server hangs"); feeds != tt.feeds || late != tt.late {
					t.Errorf("fed %d times and complained %d times, want %d and %d", feeds, late, tt.feeds, tt.late)
				}
			})
		})
	}
}
