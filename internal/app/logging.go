package app

import (
	"io"
	"log/slog"
	"time"

	"cellserver/internal/app/settings"
)

// flushTimeout bounds the wait for the last log lines at exit: enough for any sink that takes lines at all.
const flushTimeout = 500 * time.Millisecond

func newLogger(o *settings.Options, w io.Writer) *slog.Logger {
	o.Level.Set(settings.SlogLevel(o.LogLevel))
	handler := &slog.HandlerOptions{Level: &o.Level}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, handler))
	}
	return slog.New(slog.NewTextHandler(w, handler))
}

// noteLostLines logs lost lines to the sink itself.
func noteLostLines(o *settings.Options, sink io.Writer, lost uint64) {
	newLogger(o, sink).Warn("log lines were lost: they came faster than they could be written", "lines", lost)
}
