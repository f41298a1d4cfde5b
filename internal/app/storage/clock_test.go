package storage

import (
	"bytes"
	"log/slog"
	"testing"
	"time"
)

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
