package main

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
)

// flushTimeout is how long the end of the program waits for the last log lines to be written, which is enough for any sink
// but one that does not take them.
const flushTimeout = 500 * time.Millisecond

func (o *options) defineLogs(fs *pflag.FlagSet) {
	fs.StringVar(&o.logLevel, "log-level", "info", "`level`: debug, info, warn or error")
	fs.StringVar(&o.logFormat, "log-format", "text", "`format`: text or json")
}

func (o *options) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	switch o.logLevel {
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
			return nil, fmt.Errorf("--log-level: %w", err)
		}
	default:
		return nil, fmt.Errorf("--log-level must be debug, info, warn or error, got %q", o.logLevel)
	}
	handler := &slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, handler)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, handler)), nil
	}
	return nil, fmt.Errorf("--log-format must be text or json, got %q", o.logFormat)
}

// noteLostLines logs to the sink itself that lines were lost.
func (o *options) noteLostLines(sink io.Writer, lost uint64) {
	if log, err := o.logger(sink); err == nil {
		log.Warn("log lines were lost, because they came faster than they could be written", "lines", lost)
	}
}
