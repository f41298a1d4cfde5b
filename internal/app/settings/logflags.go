package settings

import (
	"log/slog"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
)

func (o *Options) defineLogs(fs *pflag.FlagSet) {
	flagvalue.ChoiceVar(fs, &o.LogLevel, "log-level", "info", "`level`: debug, info, warn or error", "debug", "info", "warn", "error")
	flagvalue.ChoiceVar(fs, &o.LogFormat, "log-format", "text", "`format`: text or json", "text", "json")
}

// SlogLevel converts a valid --log-level.
func SlogLevel(name string) (level slog.Level) {
	_ = level.UnmarshalText([]byte(name))
	return level
}
