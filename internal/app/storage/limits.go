package storage

import (
	"fmt"

	"cellserver/internal/decide/namedlimit/limitsfile"
)

// openLimits reads the named limits: those defined by commands, from the data directory, and the file's.
func (s *Storage) openLimits() error {
	o := s.options
	config := limitsfile.Config{File: o.LimitsFile, Reading: o.Reading(), Repair: o.DataRecover, Log: s.log}
	if s.dir != nil {
		config.Dir = s.dir
	}
	s.Limits = limitsfile.New(config)
	if err := s.Limits.Load(); err != nil {
		return fmt.Errorf("--data-dir %s: %w", o.DataDir, err)
	}
	if o.LimitsFile == "" {
		return nil
	}
	if err := s.Limits.Reload(); err != nil {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return nil
}

func (s *Storage) ReloadLimits() {
	if s.options.LimitsFile == "" {
		return
	}
	if err := s.Limits.Reload(); err != nil {
		s.log.Error("cannot use the file of limits; they stay as they were", "error", err,
			"hint", "correct it and send SIGHUP, or CL.LIMIT RELOAD")
	}
}
