package app

import (
	"io"
	"log/slog"
	"time"

	"cellserver/internal/app/settings"
)

// flushTimeout is how long the end of the program waits for the last log lines to be written, which is enough for any sink
// but one that does not take them.
const flushTimeout = 500 * time.Millisecond

func newLogger(o *settings.Options, w io.Writer) *slog.Logger {
	o.Level.Set(settings.SlogLevel(o.LogLevel))
	handler := &slog.HandlerOptions{Level: &o.Level}
	if o.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, handler))
	}
	return slog.New(slog.NewTextHandler(w, handler))
}

// noteLostLines logs to the sink itself that lines were lost.
func noteLostLines(o *settings.Options, sink io.Writer, lost uint64) {
	newLogger(o, sink).Warn("log lines were lost, because they came faster than they could be written", "lines", lost)
}
