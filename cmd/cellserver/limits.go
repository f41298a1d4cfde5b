package main

import (
	"fmt"

	"cellserver/internal/decide/limits/limitsfile"
)

// openLimits reads the named limits: those that commands have defined, of the data directory, and those of the file.
func (a *app) openLimits() error {
	o := a.options
	config := limitsfile.Config{File: o.limitsFile, Reading: o.reading(), Repair: o.dataRecover, Log: a.log}
	if a.dir != nil {
		config.Dir = a.dir
	}
	a.limits = limitsfile.New(config)
	if err := a.limits.Load(); err != nil {
		return fmt.Errorf("--data-dir %s: %w", o.dataDir, err)
	}
	if o.limitsFile == "" {
		return nil
	}
	if err := a.limits.Reload(); err != nil {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return nil
}

// reloadLimits is a part of reload.
func (a *app) reloadLimits() {
	if a.options.limitsFile == "" {
		return
	}
	if err := a.limits.Reload(); err != nil {
		a.log.Error("cannot use the file of limits; they stay as they were", "error", err,
			"hint", "correct it and send SIGHUP, or CL.LIMIT RELOAD")
	}
}
