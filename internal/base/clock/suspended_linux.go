package clock

import "golang.org/x/sys/unix"

// suspended compares the two clocks of the kernel that differ by it. They cannot be read at once, and the thread may lose
// its processor in between.
func suspended() (leastNs, mostNs int64) {
	var before, boot, after unix.Timespec
	for _, r := range []struct {
		clock int32
		into  *unix.Timespec
	}{{unix.CLOCK_MONOTONIC, &before}, {unix.CLOCK_BOOTTIME, &boot}, {unix.CLOCK_MONOTONIC, &after}} {
		if unix.ClockGettime(r.clock, r.into) != nil { // forbidden, and then always
			return 0, 0
		}
	}
	return boot.Nano() - after.Nano(), boot.Nano() - before.Nano()
}
