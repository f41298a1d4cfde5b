package calendar

import (
	"math"
	"time"
)

const (
	nsPerSec   = int64(time.Second)
	secPerMin  = 60
	secPerHour = 60 * secPerMin
	secPerDay  = 24 * secPerHour

	// firstMonday is 5 January 1970, in days since the epoch.
	firstMonday = 4

	// maxOffsetSec exceeds every offset from UTC that tzfile(5) allows a zone: at most 26 hours.
	maxOffsetSec = 36 * secPerHour
)

// Window returns the window that contains a wall-clock time: startNs <= wallNs < endNs. It saturates: an end
// beyond an int64 is MaxInt64, which then is no boundary. A nil location is UTC.
//
// A window begins at the first instant at which a clock of the zone shows its boundary or a later time: after
// a gap, and the first of a time shown twice.
func (s Spec) Window(location *time.Location, wallNs int64) (startNs, endNs int64) {
	wallSec := floorDiv(wallNs, nsPerSec)
	if lengthSec := s.fixedSec(); lengthSec != 0 {
		startSec := floorDiv(wallSec, lengthSec) * lengthSec
		return toNs(startSec), toNs(startSec + lengthSec)
	}
	offsetSec, _ := segment(location, wallSec)
	n := s.index(wallSec + offsetSec)
	startSec := instant(location, s.boundarySec(n))
	for startSec > wallSec {
		n--
		startSec = instant(location, s.boundarySec(n))
	}
	endSec := instant(location, s.boundarySec(n+1))
	for endSec <= wallSec { // else the next window began before the clocks were set back, or has no length
		n++
		startSec, endSec = endSec, instant(location, s.boundarySec(n+1))
	}
	return toNs(startSec), toNs(endSec)
}

// fixedSec returns the length of windows that are multiples of one since the epoch, else 0.
func (s Spec) fixedSec() int64 {
	if s.Every >= Day && !s.Epoch {
		return 0
	}
	return s.Every.FixedSec()
}

// index returns the number of the window of a civil second, or the one after if its unit starts later.
func (s Spec) index(civilSec int64) int64 {
	switch s.Every {
	case Day:
		return floorDiv(civilSec-int64(s.Start)*secPerMin, secPerDay)
	case Week:
		return floorDiv(civilSec-(firstMonday+int64(s.Start))*secPerDay, daysPerWeek*secPerDay)
	default: // Month or Year
	}
	year, month, _ := time.Unix(civilSec, 0).UTC().Date()
	if s.Every == Month {
		return int64(year)*monthsPerYear + int64(month) - 1
	}
	return int64(year)
}

// boundarySec returns the civil second at which a window begins.
func (s Spec) boundarySec(n int64) int64 {
	switch s.Every {
	case Day:
		return n*secPerDay + int64(s.Start)*secPerMin
	case Week:
		return (n*daysPerWeek + firstMonday + int64(s.Start)) * secPerDay
	case Month:
		year := floorDiv(n, monthsPerYear)
		return dateSec(int(year), time.Month(n-year*monthsPerYear+1), int(s.Start)+1)
	default:
		month, day := s.Start.date()
		return dateSec(int(n), month, day)
	}
}

// dateSec returns the civil second at which a day begins, the month's last day if it is shorter.
func dateSec(year int, month time.Month, day int) int64 {
	day = min(day, lengthOfMonth(year, month))
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
}

func lengthOfMonth(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// instant returns the first Unix second at which a clock of the location shows a civil second or a later one.
func instant(location *time.Location, civilSec int64) int64 {
	if location == nil {
		return civilSec
	}
	for atSec := civilSec - maxOffsetSec; ; {
		offsetSec, endSec := segment(location, atSec)
		if shownSec := max(atSec, civilSec-offsetSec); shownSec < endSec {
			return shownSec
		}
		atSec = endSec
	}
}

// segment returns the offset from UTC at a Unix second and a later second up to which it holds.
func segment(location *time.Location, atSec int64) (offsetSec, endSec int64) {
	if location == nil {
		return 0, math.MaxInt64
	}
	at := time.Unix(atSec, 0).In(location)
	_, offset := at.Zone()
	offsetSec = min(max(int64(offset), -maxOffsetSec), maxOffsetSec)
	_, end := at.ZoneBounds()
	if end.IsZero() {
		return offsetSec, math.MaxInt64
	}
	endSec = end.Unix()
	if endSec <= atSec { // on 31 December of a leap year ZoneBounds returns the end of its 365th day
		endSec = atSec + secPerHour
	}
	return offsetSec, endSec
}

// toNs saturates.
func toNs(sec int64) int64 {
	switch {
	case sec > math.MaxInt64/nsPerSec:
		return math.MaxInt64
	case sec < math.MinInt64/nsPerSec:
		return math.MinInt64
	default:
		return sec * nsPerSec
	}
}

func floorDiv(a, b int64) int64 {
	quotient := a / b
	if a%b < 0 {
		quotient--
	}
	return quotient
}
