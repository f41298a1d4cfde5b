package main

import (
	"errors"

	"cellserver/internal/persist"
)

var errDiskFault = errors.New("changes do not reach the disk; the log says why")

// diskReady is the part of /readyz that --unready-on-disk-fault adds. The cause may contain a path, and is left to the log.
func diskReady(st persist.Status) error {
	if st.Fault != nil {
		return errDiskFault
	}
	return nil
}
