package main

import (
	"errors"
	"testing"

	"cellserver/internal/persist"
)

func TestDiskReady(t *testing.T) {
	t.Parallel()
	if err := diskReady(persist.Status{Faults: 1}); err != nil {
		t.Errorf("after a fault: %v", err)
	}
	if err := diskReady(persist.Status{Fault: errors.New("write /var/lib/cellserver/log-1: no space left on device")}); !errors.Is(err, errDiskFault) {
		t.Errorf("during a fault: got %v", err)
	}
}
