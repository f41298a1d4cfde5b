package main

import (
	"fmt"

	"cellserver/internal/decide/limits"
)

// openLimits reads the named limits: those that commands have defined, of the data directory, and those of the file.
func (s *storage) openLimits() error {
	o := s.options
	config := limits.Config{File: o.limitsFile, Reading: o.reading(), Repair: o.dataRecover, Log: s.log}
	if s.dir != nil {
		config.Dir = s.dir
	}
	s.limits = limits.New(config)
	if err := s.limits.Load(); err != nil {
		return fmt.Errorf("--data-dir %s: %w", o.dataDir, err)
	}
	if o.limitsFile == "" {
		return nil
	}
	if err := s.limits.Reload(); err != nil {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return nil
}

// reloadLimits is a part of reload.
func (s *storage) reloadLimits() {
	if s.options.limitsFile == "" {
		return
	}
	if err := s.limits.Reload(); err != nil {
		s.log.Error("cannot use the file of limits; they stay as they were", "error", err,
			"hint", "correct it and send SIGHUP, or CL.LIMIT RELOAD")
	}
}
