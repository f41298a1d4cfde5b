package main

import (
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

// flushTimeout is how long the end of the program waits for the last log lines to be written, which is enough for any sink
// but one that does not take them.
const flushTimeout = 500 * time.Millisecond

func (o *options) defineLogs(fs *pflag.FlagSet) {
	flagvalue.ChoiceVar(fs, &o.logLevel, "log-level", "info", "`level`: debug, info, warn or error", "debug", "info", "warn", "error")
	flagvalue.ChoiceVar(fs, &o.logFormat, "log-format", "text", "`format`: text or json", "text", "json")
}

// slogLevel is the level of a name that was checked.
func slogLevel(name string) (level slog.Level) {
	_ = level.UnmarshalText([]byte(name))
	return level
}

func (o *options) logger(w io.Writer) *slog.Logger {
	o.level.Set(slogLevel(o.logLevel))
	handler := &slog.HandlerOptions{Level: &o.level}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, handler))
	}
	return slog.New(slog.NewTextHandler(w, handler))
}

// noteLostLines logs to the sink itself that lines were lost.
func (o *options) noteLostLines(sink io.Writer, lost uint64) {
	o.logger(sink).Warn("log lines were lost, because they came faster than they could be written", "lines", lost)
}
