package squares

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/test/flowtest"
)

// Algorithms, as a file of limits names them.
const (
	aFunnel      = "funnel"
	aBucket      = "token_bucket"
	aFixed       = "fixed_window"
	aSliding     = "sliding_window"
	aApproximate = "approximate_window"
	aQuota       = "quota"
)

var algorithms = []string{aFunnel, aBucket, aFixed, aSliding, aApproximate, aQuota}

const secNs = int64(time.Second)

// rule is a rule of a limit, as a file has it.
type rule struct {
	algorithm string
	name      string
	capacity  int64 // or max_count
	count     int64 // that leaks or refills in a period
	period    int64 // seconds
	every     string
	zone      string
	start     string
	share     float64 // of it that is allowed; 0 for all
	block     int64   // seconds; 0 for none
	each      bool
}

// id is what a rule's state is known by.
func (r *rule) id() string {
	switch {
	case r.name != "":
		return r.algorithm + " " + r.name
	case r.algorithm == aQuota:
		return strings.Join([]string{aQuota, "every", r.every, r.zone}, " ")
	}
	return fmt.Sprint(r.algorithm, " of ", r.period)
}

func (r *rule) isFunnel() bool { return r.algorithm == aFunnel || r.algorithm == aBucket }

func (r *rule) isWindow() bool { return r.algorithm == aFixed || r.algorithm == aQuota }

// intervalNs is the time in which a unit leaks.
func (r *rule) intervalNs() int64 {
	ns := r.period * secNs / r.count
	if r.share > 0 {
		ns = int64(math.Ceil(float64(ns) / r.share))
	}
	return ns
}

// most is what fits.
func (r *rule) most() int64 {
	if r.share > 0 {
		return max(1, int64(float64(r.capacity)*r.share))
	}
	return r.capacity
}

// words are the rule in a command.
func (r *rule) words() []string {
	words := r.plainWords()
	if r.block > 0 {
		words = append(words, "BLOCK", strconv.FormatInt(r.block, 10))
	}
	if r.each {
		words = append(words, "EACH")
	}
	return words
}

func (r *rule) plainWords() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch r.algorithm {
	case aFunnel:
		return []string{"FUNNEL", number(r.capacity - 1), number(r.count), number(r.period)}
	case aBucket:
		return []string{"TOKENBUCKET", number(r.capacity), number(r.count), number(r.period)}
	case aFixed:
		return []string{"FIXEDWINDOW", number(r.capacity), number(r.period)}
	case aSliding:
		return []string{"SLIDINGWINDOW", number(r.capacity), number(r.period)}
	case aApproximate:
		return []string{"SLIDINGWINDOW", number(r.capacity), number(r.period), "APPROX"}
	}
	words := []string{"QUOTA", number(r.capacity), strings.ToUpper(r.every)}
	if r.zone != "" {
		words = append(words, "TZ", r.zone)
	}
	if r.start != "" {
		words = append(words, "START", r.start)
	}
	return words
}

// text is the rule in EXPLAIN.
func (r *rule) text() string {
	text := strings.Join(r.words(), " ")
	if r.name != "" {
		return r.name + ": " + text
	}
	return text
}

// yaml is the rule in a file.
func (r *rule) yaml() string {
	b := "algorithm: " + r.algorithm
	if r.block > 0 {
		b += fmt.Sprintf(", block: %d", r.block)
	}
	if r.each {
		b += ", block_on: each"
	}
	if r.name != "" {
		b += ", name: " + r.name
	}
	switch r.algorithm {
	case aFunnel:
		return b + fmt.Sprintf(", capacity: %d, count: %d, period: %d", r.capacity, r.count, r.period)
	case aBucket:
		return b + fmt.Sprintf(", capacity: %d, refill: %d, period: %d", r.capacity, r.count, r.period)
	case aQuota:
		b += fmt.Sprintf(", max_count: %d, every: %s", r.capacity, r.every)
		if r.zone != "" {
			b += ", time_zone: " + r.zone
		}
		if r.start != "" {
			b += fmt.Sprintf(", start: %q", r.start)
		}
		return b
	}
	return b + fmt.Sprintf(", max_count: %d, period: %d", r.capacity, r.period)
}

// entry is the state of a rule. Its times are Unix nanoseconds.
type entry struct {
	untilNs int64 // from then on it is as none

	emptyNs, intervalNs int64         // of a funnel: when it is empty, and the interval by which it was last charged; 0 for none
	flow                flowtest.Flow // of a funnel: all since it was empty, with what is held
	era, turns          int           // of a window: which one of the key it is, and how many periods an approximate one has ended

	units int64 // of a fixed window or a quota, which ends with the entry

	charges []charge // of an exact window, by time
	keepNs  int64    // the longest period since it was empty

	startNs, previous, current int64 // of an approximate window

	place int  // in the key
	by    rule // that has charged it
	file  int  // how often the file had been read then

	isBlock bool // of a rule; all else is 0 then
}

type charge struct{ atNs, units int64 }

func (e *entry) copied() *entry {
	if e == nil {
		return &entry{}
	}
	own := *e
	own.charges, own.flow = slices.Clone(e.charges), e.flow.Clone()
	return &own
}

// converted returns the debt of a funnel by another interval: as many units, at most a full funnel, and no
// less than what a debit has charged beyond it.
func (r *rule) converted(debtNs, oldNs int64) int64 {
	newNs := r.intervalNs()
	if oldNs == newNs || oldNs == 0 {
		return debtNs
	}
	scaled := new(big.Int).Mul(big.NewInt(debtNs), big.NewInt(newNs))
	scaled.Add(scaled, big.NewInt(oldNs-1)).Div(scaled, big.NewInt(oldNs))
	most := big.NewInt(max(r.most()*newNs, debtNs))
	if scaled.Cmp(most) > 0 {
		scaled = most
	}
	return scaled.Int64()
}

// open returns what a rule makes of its entry at a time.
func (r *rule) open(e *entry, nowNs int64) *entry {
	s := e.copied()
	if s.untilNs <= nowNs {
		s = &entry{}
	}
	switch {
	case r.isFunnel():
		if debtNs := s.emptyNs - nowNs; debtNs > 0 {
			if s.intervalNs > 0 {
				s.flow.Rebase(nowNs, r.intervalNs(), r.most()*r.intervalNs())
			}
			s.emptyNs, s.intervalNs = nowNs+r.converted(debtNs, s.intervalNs), r.intervalNs()
			s.untilNs = s.emptyNs
		}
	case r.algorithm == aApproximate:
		if s.previous == 0 && s.current == 0 || nowNs-s.startNs >= 2*r.period*secNs {
			s.startNs, s.previous, s.current, s.era, s.turns = nowNs, 0, 0, 0, 0
		} else if nowNs-s.startNs >= r.period*secNs {
			s.startNs, s.previous, s.current = s.startNs+r.period*secNs, s.current, 0
			s.turns++
		}
	}
	return s
}

// used returns the units in use at a time, rounded up; of a funnel that has no interval, none.
func (r *rule) used(s *entry, atNs int64) (units int64) {
	periodNs := r.period * secNs
	switch r.algorithm {
	case aFixed, aQuota:
		if atNs < s.untilNs {
			units = s.units
		}
	case aSliding:
		for _, c := range s.charges {
			if c.atNs > atNs-periodNs {
				units += c.units
			}
		}
	case aApproximate:
		startNs, previous, current := s.startNs, s.previous, s.current
		for ; atNs-startNs >= periodNs && previous+current > 0; startNs += periodNs {
			previous, current = current, 0
		}
		share := new(big.Int).Mul(big.NewInt(previous), big.NewInt(startNs+periodNs-atNs))
		share.Add(share, big.NewInt(periodNs-1)).Div(share, big.NewInt(periodNs))
		units = current + share.Int64()
	default: // a part of a unit takes a whole one's place
		units = (max(0, s.emptyNs-atNs) + r.intervalNs() - 1) / r.intervalNs()
	}
	return units
}

func (r *rule) allows(s *entry, atNs, units int64) bool { return r.used(s, atNs)+units <= r.most() }

// earliest returns the time from a time on until something holds, which then holds for ever.
func earliest(fromNs int64, holds func(atNs int64) bool) (afterNs int64) {
	if holds(fromNs) {
		return 0
	}
	low, high := int64(0), int64(1)
	for !holds(fromNs + high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; holds(fromNs + middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// add charges units, which are more than 0.
func (r *rule) add(s *entry, nowNs, units int64) {
	periodNs := r.period * secNs
	switch r.algorithm {
	case aFixed:
		if s.untilNs <= nowNs {
			s.untilNs = nowNs + periodNs
		}
		s.units += units
	case aQuota:
		s.untilNs = max(s.untilNs, r.boundaryNs(nowNs))
		s.units += units
	case aSliding:
		r.keep(s, nowNs)
		s.charges = append(s.charges, charge{nowNs, units})
	case aApproximate:
		s.current += units
	default:
		s.emptyNs = max(s.emptyNs, nowNs) + units*r.intervalNs()
		s.flow.Charge(nowNs, units, r.intervalNs(), 0)
	}
}

// keep drops what the longest period of an exact window no longer counts.
func (r *rule) keep(s *entry, nowNs int64) {
	if len(s.charges) == 0 {
		s.keepNs = 0
	}
	s.keepNs = max(s.keepNs, r.period*secNs)
	s.charges = slices.DeleteFunc(s.charges, func(c charge) bool { return c.atNs <= nowNs-s.keepNs })
}

// refund gives units back.
func (r *rule) refund(s *entry, nowNs, units int64) {
	switch r.algorithm {
	case aFixed, aQuota:
		s.units = max(0, s.units-units)
	case aSliding:
		left := min(units, r.used(s, nowNs))
		if left > 0 {
			r.keep(s, nowNs)
		}
		for ; left > 0; left-- {
			last := &s.charges[len(s.charges)-1]
			if last.units--; last.units == 0 {
				s.charges = s.charges[:len(s.charges)-1]
			}
		}
	case aApproximate:
		fromCurrent := min(s.current, units)
		s.current -= fromCurrent
		s.previous = max(0, s.previous-(units-fromCurrent))
	default:
		if s.emptyNs > nowNs {
			s.emptyNs = max(nowNs, s.emptyNs-units*r.intervalNs())
			s.flow.Refund(nowNs, units, r.intervalNs())
		}
	}
}

// settle sets when a charged entry ends.
func (r *rule) settle(s *entry, nowNs int64) {
	periodNs := r.period * secNs
	switch r.algorithm {
	case aSliding:
		s.untilNs = nowNs
		if n := len(s.charges); n > 0 {
			s.untilNs = s.charges[n-1].atNs + s.keepNs
		}
	case aApproximate:
		s.untilNs = nowNs
		if s.current > 0 {
			s.untilNs = s.startNs + 2*periodNs
		} else if s.previous > 0 {
			s.untilNs = s.startNs + periodNs
		}
	case aFunnel, aBucket:
		s.untilNs, s.intervalNs = s.emptyNs, r.intervalNs()
	}
}

// resetNs returns the time until everything is available; of a window until its end.
func (r *rule) resetNs(s *entry, nowNs int64) int64 {
	if r.isFunnel() {
		return max(0, s.emptyNs-nowNs)
	}
	if r.isWindow() {
		return max(0, s.untilNs-nowNs)
	}
	return earliest(nowNs, func(atNs int64) bool { return r.used(s, atNs) == 0 })
}

// boundaryNs returns the end of a quota's window.
func (r *rule) boundaryNs(nowNs int64) int64 {
	location := time.UTC
	if r.zone != "" {
		location, _ = time.LoadLocation(r.zone)
	}
	now := time.Unix(0, nowNs).In(location)
	year, month, day := now.Date()
	for n := range 3 {
		var end time.Time
		switch r.every {
		case "epoch": // windows of a fixed length since 1970
			return nowNs - nowNs%(r.period*secNs) + r.period*secNs
		case "minute":
			end = now.Truncate(time.Minute).Add(time.Minute)
		case "hour":
			end = now.UTC().Truncate(time.Hour).Add(time.Hour)
		case "day":
			clock, _ := time.Parse("15:04", r.start)
			end = time.Date(year, month, day+n, clock.Hour(), clock.Minute(), 0, 0, location)
		case "month":
			first := 1
			if r.start != "" {
				first, _ = strconv.Atoi(r.start) // at most 28 here
			}
			end = time.Date(year, month+time.Month(n), first, 0, 0, 0, 0, location)
		}
		if end.UnixNano() > nowNs {
			return end.UnixNano()
		}
	}
	return math.MaxInt64
}
