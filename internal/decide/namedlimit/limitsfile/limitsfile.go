// Package limitsfile reads the file of named limits that an operator writes, and reads and writes the one
// that keeps what commands have defined. It is what a limits.Registry knows of files.
package limitsfile

import (
	"log/slog"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk"
)

// Config is where a registry's definitions come from.
type Config struct {
	File    string         // of YAML, which defines limits; "" for none
	Reading funnel.Reading // of max_burst there
	Dir     disk.Dir       // where what commands define is kept; nil for nowhere
	Repair  bool           // keep aside what is damaged there, and begin without it
	Log     *slog.Logger
}

// New returns a registry on these files, without limits.
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
