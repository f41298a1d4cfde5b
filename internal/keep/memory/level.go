package memory

// Level reports used shares of a maximum worth a warning. The zero value has seen none. It belongs to one
// goroutine.
type Level struct{ percent int }

// Levels, and the distance below one that permits another warning.
const (
	warnPercent   = 75
	urgentPercent = 90
	backPercent   = 5
)

// Crossed returns the level reached since the last call, in percent, or 0.
func (l *Level) Crossed(used, most int64) (percent int) {
	if most <= 0 {
		l.percent = 0
		return 0
	}
	now := int(float64(used) / float64(most) * 100)
	reached := 0
	for _, level := range []int{warnPercent, urgentPercent} {
		if now >= level || l.percent >= level && now >= level-backPercent {
			reached = level
		}
	}
	if reached > l.percent {
		percent = reached
	}
	l.percent = reached
	return percent
}
