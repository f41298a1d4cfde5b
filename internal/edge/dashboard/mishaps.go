package dashboard

import "time"

// mishap is a kind of event that faults are found by.
type mishap uint8

const (
	evictedKey mishap = iota
	refusedKey
	evictedValue
	refusedValue
	ownError
	refusedConnection
	refusedNewKey
	endedScript
	lostLogLine
	panicking
	wrongPassword
	decidedByPolicy
	askedOfStore
	timedOutHandover
	refusedChanges
	mishaps
)

// tally counts mishaps.
type tally [mishaps]uint64

func (s *Sample) tally() *tally {
	return &tally{
		evictedKey: s.Evicted, refusedKey: s.Refused, evictedValue: s.Values.Evicted, refusedValue: s.Values.Refused,
		ownError: s.OwnErrors, refusedConnection: s.ConnectionsRefused, refusedNewKey: s.NewKeysRefused, endedScript: s.ScriptsEnded,
		lostLogLine: s.LogLinesLost, panicking: s.Panics, wrongPassword: s.WrongPasswords, decidedByPolicy: s.ByPolicy,
		askedOfStore: s.StoreRequests, timedOutHandover: s.HandoversTimedOut, refusedChanges: s.ChangesRefused,
	}
}

// since returns the difference to an earlier tally. A counter that was reset began at 0.
func (t *tally) since(before *tally) (n tally) {
	for i := range n {
		if n[i] = t[i]; t[i] >= before[i] {
			n[i] -= before[i]
		}
	}
	return n
}

// within counts mishaps of a kind within a time before the newest point.
func (v *view) within(m mishap, span time.Duration) (n uint64) {
	for i := len(v.points) - 1; i >= 0 && v.points[i].atNs > v.points[len(v.points)-1].atNs-int64(span); i-- {
		n += v.points[i].mishaps[m]
	}
	return n
}

// rate returns the rate per second of mishaps of a kind within a time, or since the first point, but at least
// a minute.
func (v *view) rate(m mishap, span time.Duration) float64 {
	if len(v.points) == 0 {
		return 0
	}
	known := time.Duration(v.points[len(v.points)-1].atNs-v.points[0].atNs) + sampleInterval
	return float64(v.within(m, span)) / max(time.Minute, min(span, known)).Seconds()
}
