// Package limitsfile reads the operator's file of named limits, and reads and writes those defined by
// commands, for a namedlimit.Registry.
package limitsfile

import (
	"log/slog"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk"
)

// Config locates the definitions.
type Config struct {
	File    string         // YAML with limits; "" for none
	Reading funnel.Reading // of max_burst in it
	Dir     disk.Dir       // keeps definitions by commands; nil for none
	Repair  bool           // sets damaged definitions aside and starts without them
	Log     *slog.Logger
}

// New returns an empty registry for these files.
func New(c Config) *namedlimit.Registry {
	registry := namedlimit.Config{Log: c.Log}
	if c.File != "" {
		registry.File = operatorsFile{c.File, c.Reading}
	}
	if c.Dir != nil {
		registry.Keeper = keptFile{c.Dir, c.Repair, c.Log}
	}
	return namedlimit.New(registry)
}
