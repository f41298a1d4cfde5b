package storage

import (
	"errors"
	"testing"

	"cellserver/internal/app/settings"
	"cellserver/internal/store"
)

func TestDiskReady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		unready bool
		status  func() store.Durability
		want    error
	}{
		{"nothing is kept", true, nil, nil},
		{"all is well again", true, func() store.Durability { return store.Durability{Faults: 1} }, nil},
		{"a fault", true, func() store.Durability { return store.Durability{Fault: errors.New("no space left on device")} }, errDiskFault},
		{"a fault, without the flag", false, func() store.Durability { return store.Durability{Fault: errors.New("no space left on device")} }, nil},
	} {
		o := &settings.Options{UnreadyOnDiskFault: tt.unready}
		if err := diskReady(o, tt.status); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}
