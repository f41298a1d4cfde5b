package prefilter

import (
	"math/rand/v2"
	"testing"
)

const us = int64(1_000)

func TestBounds(t *testing.T) {
	var l Timeline
	if _, _, ok := l.Between(0); ok {
		t.Error("nothing was noted, but there are times")
	}
	for _, step := range []struct {
		sent, received, server int64
		at, earliest, latest   int64
	}{
		// The server told 5 s between 100 and 300 us, up to a tick after its time.
		{100 * us, 300 * us, 5 * sec, 300 * us, 5*sec - 1, 5*sec + 201*us + 200},
		// A slow reply adds only the clocks' drift.
		{400 * us, 900 * us, 5*sec + 350*us, 900 * us, 5*sec + 600*us - 601, 5*sec + 801*us + 800},
		// A quick one narrows it.
		{1000 * us, 1010 * us, 5*sec + 800*us, 1010 * us, 5*sec + 800*us - 1, 5*sec + 811*us + 10},
		// A second later it still counts, but less.
		{900 * ms, 910 * ms, 5*sec + 905*ms, 1001010 * us, 6*sec + 800*us - 1*ms - 1, 6*sec + 811*us + 1*ms + 10},
	} {
		l.Note(step.sent, step.received, step.server)
		earliest, latest, _ := l.Between(step.at)
		if earliest < step.earliest-2 || earliest > step.earliest+2 || latest < step.latest-2 || latest > step.latest+2 {
			t.Errorf("at %d: from %d to %d, want %d to %d", step.at, earliest, latest, step.earliest, step.latest)
		}
	}
	l.Note(10*sec, 9*sec, 0) // received before it was sent: no reply
	if _, _, ok := l.Between(10 * sec); !ok {
		t.Error("it is forgotten")
	}
}

// TestHolds: the bounds hold for any delays while the clocks drift within their bound.
func TestHolds(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		drift := float64(r.IntN(1900)-950) / 1e6
		ahead := r.Int64N(20*sec) - 10*sec
		server := func(local int64) int64 { return local + ahead + int64(float64(local)*drift) }
		var l Timeline
		var widest int64
		for local := int64(0); local < 20*sec; {
			sent := local
			told := sent + r.Int64N(r.Int64N(20*ms)+1)
			received := told + r.Int64N(r.Int64N(20*ms)+1)
			l.Note(sent, received, server(told)/us*us)
			local = received + r.Int64N(200*ms)
			earliest, latest, _ := l.Between(local)
			if now := server(local); now < earliest || now > latest {
				t.Fatalf("seed %d: it is %d by the server, which is not from %d to %d", seed, now, earliest, latest)
			}
			if local > sec {
				widest = max(widest, latest-earliest)
			}
		}
		if widest > 30*ms {
			t.Errorf("seed %d: bounds %d ns apart", seed, widest)
		}
	}
}

// TestSteps: a clock that was set is followed, at once if seen, else after two periods.
func TestSteps(t *testing.T) {
	for _, step := range []int64{-10 * sec, -sec, -3 * ms, -300 * us, 300 * us, 3 * ms, sec, 10 * sec} {
		var l Timeline
		ahead := 7 * sec
		note := func(local int64) (holds bool) {
			l.Note(local, local+500*us, local+250*us+ahead)
			local += 500 * us
			earliest, latest, _ := l.Between(local)
			return earliest <= local+ahead && local+ahead <= latest
		}
		local := int64(0)
		for ; local < 3*sec; local += 10 * ms {
			if !note(local) {
				t.Fatal("wrong before the step")
			}
		}
		ahead += step
		if seen := step < -ms || step > ms; !note(local) && seen {
			t.Errorf("a step by %d is not followed at once", step)
		}
		for endNs := local + 2*periodNs; local <= endNs; local += 10 * ms {
			note(local)
		}
		if !note(local) {
			t.Errorf("a step by %d is not followed after two periods", step)
		}
	}
}

// TestLateReply: a reply from before the clock was set restores nothing.
func TestLateReply(t *testing.T) {
	var l Timeline
	l.Note(1*sec, 1*sec+ms, 11*sec)
	l.Note(2*sec, 2*sec+ms, 52*sec)
	l.Note(1*sec+500*ms, 2*sec+2*ms, 11*sec+600*ms)
	if _, latest, _ := l.Between(3 * sec); latest < 53*sec {
		t.Errorf("it is at most %d, by an old reply", latest)
	}
}

func TestTimelineAllocations(t *testing.T) {
	var l Timeline
	local := int64(0)
	l.Note(local, local+10*us, 5*sec)
	if allocs := testing.AllocsPerRun(100, func() {
		local += 50 * us
		l.Note(local, local+500*us, 5*sec+local+200*us)
		l.Between(local)
	}); allocs != 0 {
		t.Errorf("%v allocations for a reply that tells nothing new", allocs)
	}
}

// TestAfter: a known time goes on, at most at the clocks' drift, and never back.
func TestAfter(t *testing.T) {
	for _, c := range []struct{ passedNs, want int64 }{{0, 0}, {1, 0}, {-5, 0}, {1000, 998}, {sec, sec - ms - 1}} {
		if got := After(5*sec, c.passedNs) - 5*sec; got != c.want {
			t.Errorf("%d after: got %d, want %d", c.passedNs, got, c.want)
		}
	}
}
