package clock

import "golang.org/x/sys/unix"

// suspended compares two kernel clocks that differ by it. They cannot be read at the same time.
func suspended() (leastNs, mostNs int64) {
	var before, boot, after unix.Timespec
	for _, r := range []struct {
		clock int32
		into  *unix.Timespec
	}{{unix.CLOCK_MONOTONIC, &before}, {unix.CLOCK_BOOTTIME, &boot}, {unix.CLOCK_MONOTONIC, &after}} {
		if unix.ClockGettime(r.clock, r.into) != nil { // forbidden for good
			return 0, 0
		}
	}
	return boot.Nano() - after.Nano(), boot.Nano() - before.Nano()
}
