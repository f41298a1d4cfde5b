package persist

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/store"
)

// answers are what those who wait were told, by number, in order.
type answers chan answer

type answer struct {
	n    int
	kept bool
	at   time.Time
}

func (a answers) of(n int) func(kept bool) {
	return func(kept bool) { a <- answer{n, kept, time.Now()} }
}

// TestADiskThatHangs: each caller is told in time that the outcome is unknown. Changes are refused until the
// disk works, and are all on it then.
func TestADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, goOn := disktest.New(), make(chan struct{})
		hangs := make(chan bool, 1)
		dir.Before = func(disktest.Op, string) error {
			select {
			case <-hangs:
				<-goOn
			default:
			}
			return nil
		}
		l := beginLife(dir, func(c *Config) { c.Interval, c.Timeout = 0, 5*time.Second })
		got, began := make(answers, 10), time.Now()
		l.charge("before")
		l.syncNow()
		hangs <- true
		l.charge("first")
		l.Confirm(got.of(1))
		time.Sleep(2 * time.Second)
		l.charge("second")
		l.Confirm(got.of(2))
		forever := make(chan struct{})
		l.Sync(func() { close(forever) })
		for n, at := range []time.Duration{5 * time.Second, 7 * time.Second} {
			if a := <-got; a.n != n+1 || a.kept || a.at.Sub(began) < at ||
				a.at.Sub(began) > at+100*time.Millisecond {
				t.Errorf("answer %d: %+v, after %v", n+1, a, a.at.Sub(began))
			}
			if st := l.Status(); st.Fault == nil || st.Faults != 1 ||
				!strings.Contains(st.Fault.Error(), "within 5s") {
				t.Errorf("the status is %+v", st)
			}
			if _, err := l.take("refused"); !errors.Is(err, store.ErrFrozen) || l.Gate().Refusal() == nil {
				t.Errorf("a change while the disk hangs: %v", err)
			}
		}
		time.Sleep(10 * time.Minute)
		if n := l.Status().WaitingReplies; n != 1 {
			t.Errorf("%d wait", n)
		}
		close(goOn)
		<-forever
		synctest.Wait()
		if st := l.Status(); st.Fault != nil || l.Gate().Refusal() != nil || st.WaitingReplies != 0 || len(got) != 0 {
			t.Errorf("then the status is %+v, %d more are told", st, len(got))
		}
		l.charge("after")
		l.Confirm(got.of(3))
		if a := <-got; a.n != 3 || !a.kept {
			t.Errorf("got %+v", a)
		}
		again := afterCrash(dir)
		for _, name := range []string{"before", "first", "second", "after", "refused"} {
			if again.tat(name) != l.tat(name) || (l.tat(name) == 0) != (name == "refused") {
				t.Errorf("%s: %d, and is %d", name, l.tat(name), again.tat(name))
			}
		}
		endAll(t, l, again)
		if lines := l.lines.String(); strings.Count(lines, "does not answer in time") != 1 ||
			strings.Count(lines, "kept again") != 1 {
			t.Errorf("the log is %s", lines)
		}
	})
}

// TestAFullDiskAnswersInTime: waiting callers are told in time, and the fault stays the same.
func TestAFullDiskAnswersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := disktest.New()
		tr := &trouble{dir: dir, rng: rand.New(rand.NewPCG(1, 2)), left: 1 << 30}
		dir.Before = tr.before
		l := beginLife(dir, func(c *Config) { c.Interval, c.Timeout = 0, 5*time.Second })
		tr.mu.Lock()
		tr.bad = 1 << 30
		tr.mu.Unlock()
		first, _ := l.take("first")
		got, began := make(answers, 10), time.Now()
		l.Confirm(got.of(1))
		if a := <-got; a.kept || a.at.Sub(began) < 5*time.Second || a.at.Sub(began) > 5100*time.Millisecond {
			t.Errorf("got %+v, after %v", a, a.at.Sub(began))
		}
		if st := l.Status(); !errors.Is(st.Fault, errDisk) || st.Faults != 1 || st.WaitingReplies != 0 {
			t.Errorf("the status is %+v", st)
		}
		tr.heal()
		l.syncNow()
		again := afterCrash(dir)
		if again.tat("first") != first || len(got) != 0 {
			t.Errorf("%d, want %d; %d more are told", again.tat("first"), first, len(got))
		}
		endAll(t, l, again)
	})
}

// TestTimersOfReplies: one timer serves all waiters, and none runs without any.
func TestTimersOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := beginLife(disktest.New(), func(c *Config) { c.Interval, c.Timeout = 0, 5*time.Second })
		got := make(answers, 1)
		for range 1000 {
			l.Confirm(got.of(1))
			if a := <-got; !a.kept {
				t.Fatal("it is late")
			}
			time.Sleep(time.Millisecond)
		}
		timed := func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.timed
		}
		if !timed() {
			t.Error("no timer runs")
		}
		if time.Sleep(6 * time.Second); timed() {
			t.Error("a timer runs for nobody")
		}
		endAll(t, l)
	})
}
