package remotetest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWorstIsThatOfAllWindows compares with a search of every window.
func TestWorstIsThatOfAllWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		limit := Limit{MaxBurst: random.Int64N(4), Count: 1, PeriodSeconds: 1 + random.Int64N(3)}
		var calls []Call
		for range 1 + random.IntN(40) {
			sent := time.Duration(random.IntN(20)) * 500 * time.Millisecond
			calls = append(calls, Call{Sent: sent, Replied: sent + time.Duration(1+random.IntN(4))*500*time.Millisecond, Outcome: Outcome(random.IntN(2))})
		}
		got := limit.Worst(calls)
		if want := excessOfAll(limit, calls); got.Allowed > 0 && excess(limit, got) != want {
			t.Fatalf("%+v: worst window %+v exceeds by %d, the search found %d", calls, got, excess(limit, got), want)
		}
	}
}

func excess(l Limit, w Window) int64 { return w.Allowed*int64(l.Interval()) - int64(w.To-w.From) }

func excessOfAll(l Limit, calls []Call) int64 {
	most := int64(-1 << 62)
	for _, from := range calls {
		for _, to := range calls {
			w := Window{From: from.Sent, To: to.Replied}
			for _, c := range calls {
				if c.Outcome == Allowed && c.Sent >= w.From && c.Replied <= w.To {
					w.Allowed++
				}
			}
			if from.Outcome == Allowed && to.Outcome == Allowed && w.To > w.From {
				most = max(most, excess(l, w))
			}
		}
	}
	return most
}

// TestVerdict judges correct, generous and strict limiters.
func TestVerdict(t *testing.T) {
	limit := Limit{MaxBurst: 9, Count: 10, PeriodSeconds: 1}
	for _, test := range []struct {
		name      string
		interval  time.Duration // of the limiter
		late      time.Duration // from sending to the decision, at most
		broken    bool
		tooStrict bool
	}{
		{"right", limit.Interval(), 0, false, false},
		{"right, with long ways", limit.Interval(), 300 * time.Millisecond, false, false},
		{"generous by a tenth", limit.Interval() * 9 / 10, 0, true, false},
		{"strict by a tenth", limit.Interval() * 11 / 10, 0, false, true},
	} {
		l := Load{Keys: []string{"k"}, Limits: []Limit{limit}}
		r := &Record{Calls: [][]Call{decide(limit, test.interval, test.late)}}
		v := l.Judge(r, 0)
		if (len(v.Broken) > 0) != test.broken || (v.Share() < LeastShare) != test.tooStrict {
			t.Errorf("%s: %s: %q", test.name, v, v.Wrong())
		}
	}
}

// decide is a limiter with a hundred calls a second for a minute.
func decide(limit Limit, interval, late time.Duration) (calls []Call) {
	random := rand.New(rand.NewPCG(3, 4))
	var tat time.Duration
	for now := time.Second; now < time.Minute; now += 10 * time.Millisecond {
		c := Call{Sent: now, Replied: now + 1, Outcome: Limited}
		if late > 0 {
			c.Sent -= time.Duration(random.Int64N(int64(late)))
			c.Replied += time.Duration(random.Int64N(int64(late)))
		}
		if next := max(tat, now) + interval; next-interval*time.Duration(limit.Capacity()) <= now {
			tat, c.Outcome = next, Allowed
		}
		calls = append(calls, c)
	}
	return calls
}
