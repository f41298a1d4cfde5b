// Package limitsfile reads the operator's file of named limits, and reads and writes those defined by
// commands, for a namedlimit.Registry. It also writes such a file, and compares two. Definitions are values;
// a registry's calls of its files are serialized by its lock.
package limitsfile

import (
	"log/slog"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

// Config locates the definitions.
type Config struct {
	File      string                          // YAML with limits; "" for none
	Reading   funnel.Reading                  // of max_burst in it
	Dir       disk.Dir                        // keeps definitions and overrides by commands; nil for none
	Repair    bool                            // sets damaged files of Dir aside and starts without them
	Kept      func()                          // called when Dir may have a new file, and waited for; may be nil
	Calendars *calendar.Set                   // of quotas; nil for one by the server's clock
	Now       func() int64                    // Unix nanoseconds, by which overrides end; nil for the time of the system
	Refusal   func() error                    // why commands may change nothing now; nil for never
	Spent     func(limit string) store.Spends // by day; nil for nothing
	Log       *slog.Logger
}

func New(c Config) *namedlimit.Registry {
	if c.Calendars == nil {
		c.Calendars = calendar.NewSet(&calendar.Wall{}, zones.Load)
	}
	registry := namedlimit.Config{Calendars: c.Calendars, Now: c.Now, Refusal: c.Refusal, Spent: c.Spent, Log: c.Log}
	if c.File != "" {
		registry.Path = c.File
		registry.Read = func() (namedlimit.Definitions, bool, error) { return readFile(c.File, c.Reading, c.Calendars) }
	}
	if c.Dir != nil {
		registry.Keeper = newKeeper(&c)
	}
	return namedlimit.New(registry)
}
