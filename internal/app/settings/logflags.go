package main

import (
	"log/slog"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func (o *options) defineLogs(fs *pflag.FlagSet) {
	flagvalue.ChoiceVar(fs, &o.logLevel, "log-level", "info", "`level`: debug, info, warn or error", "debug", "info", "warn", "error")
	flagvalue.ChoiceVar(fs, &o.logFormat, "log-format", "text", "`format`: text or json", "text", "json")
}

// slogLevel is the level of a name that was checked.
func slogLevel(name string) (level slog.Level) {
	_ = level.UnmarshalText([]byte(name))
	return level
}
