package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/funnel"
)

// model is a line with all sums computed anew at each step.
type model struct {
	tatNs   int64
	waiting []modelWaiter
}

type modelWaiter struct {
	number       int
	limit        funnel.Limit
	debitNs      int64
	tatNs        int64 // of the funnel, with its debit and those ahead
	w            *Waiter
	latestTurnNs int64 // must not be missed
}

func (m *modelWaiter) turnNs() int64 { return m.tatNs - int64(m.limit.ToleranceNs()) }

// lastTurnNs returns the time when all will be answered.
func (m *model) lastTurnNs() (turnNs int64) {
	for i := range m.waiting {
		turnNs = max(turnNs, m.waiting[i].turnNs())
	}
	return turnNs
}

// answer removes the first ones whose turn has come.
func (m *model) answer(nowNs int64) (numbers []int) {
	for len(m.waiting) > 0 && m.waiting[0].turnNs() <= nowNs {
		numbers = append(numbers, m.waiting[0].number)
		m.waiting = m.waiting[1:]
	}
	return numbers
}

// leave has those behind move up.
func (m *model) leave(i int, nowNs int64) {
	debitNs := m.waiting[i].debitNs
	m.tatNs = max(nowNs, m.tatNs-debitNs)
	for k := i + 1; k < len(m.waiting); k++ {
		m.waiting[k].tatNs -= debitNs
	}
	m.waiting = slices.Delete(m.waiting, i, i+1)
}

// found has all move up who wait for more than the funnel holds.
func (m *model) found(tatNs int64) {
	m.tatNs = tatNs
	for i := len(m.waiting) - 1; i >= 0; i-- {
		m.waiting[i].tatNs = min(m.waiting[i].tatNs, tatNs)
		tatNs -= m.waiting[i].debitNs
	}
}

// script plays random arrivals, departures, refunds and calls on a line and its model.
type script struct {
	t      *testing.T
	rng    *rand.Rand
	queue  *harness
	model  model
	limits []funnel.Limit
	number int
}

var modelKey = keyOf("k")

func TestLineIsItsModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{t: t, rng: rand.New(rand.NewPCG(seed, 14)), queue: newHarness(), limits: []funnel.Limit{limitOf(t, 4, 1, 1)}}
			if seed%3 == 0 {
				s.limits = append(s.limits, limitOf(t, 0, 1, 1), limitOf(t, 20, 3, 2))
			}
			for range 200 {
				s.step()
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
			s.drain()
		})
	}
}

func (s *script) step() {
	switch n := s.rng.IntN(20); {
	case n < 9:
		s.arrive()
	case n < 13:
		s.leave()
	case n < 14:
		s.refund()
	case n < 15:
		s.call()
	default:
		s.sleep(time.Duration(s.rng.Int64N(int64(3 * time.Second))))
	}
}

func (s *script) arrive() {
	s.number++
	limit := s.limits[s.rng.IntN(len(s.limits))]
	quantity := 1 + s.rng.Int64N(limit.Capacity())
	atMost := time.Duration(s.rng.Int64N(int64(60 * time.Second)))
	m, nowNs := &s.model, now()
	m.tatNs = max(m.tatNs, nowNs)
	debitNs := int64(limit.IntervalNs()) * quantity
	next := modelWaiter{number: s.number, limit: limit, debitNs: debitNs, tatNs: m.tatNs + debitNs}
	turnNs := max(next.turnNs(), m.lastTurnNs())
	w, result := s.queue.enter(s.t, modelKey, limit, quantity, atMost, s.number)
	if late := turnNs > nowNs+int64(atMost); late && !result.Limited || !late && result.Limited && len(s.limits) == 1 {
		s.t.Errorf("its turn comes in %s of %s: %+v", time.Duration(turnNs-nowNs), atMost, result)
	}
	if result.Limited {
		return
	}
	if m.tatNs = next.tatNs; w == nil {
		if turnNs > nowNs {
			s.t.Errorf("it was answered %s before its turn", time.Duration(turnNs-nowNs))
		}
		return
	}
	next.w, next.latestTurnNs = w, nowNs+int64(atMost)
	m.waiting = append(m.waiting, next)
	s.compare(nil)
}

func (s *script) leave() {
	if len(s.model.waiting) == 0 {
		return
	}
	i := s.rng.IntN(len(s.model.waiting))
	who := s.model.waiting[i]
	why := []Outcome{TimedOut, Unblocked, Cancelled}[s.rng.IntN(3)]
	if !who.w.Leave(why) || who.w.Leave(why) || who.w.Outcome() != why {
		s.t.Errorf("%d has left as %d, want %d", who.number, who.w.Outcome(), why)
	}
	s.model.leave(i, now())
	s.compare([]int{who.number})
}

// refund returns units unknown to the queue.
func (s *script) refund() {
	nowNs := now()
	backNs := s.rng.Int64N(int64(20 * time.Second))
	s.queue.funnels.set(modelKey, func(tatNs int64) int64 { return max(tatNs-backNs, nowNs) })
	s.model.found(max(s.model.tatNs-backNs, nowNs))
	s.queue.Look(modelKey)
	s.compare(nil)
}

// call is a caller with a larger funnel that does not wait.
func (s *script) call() {
	debitNs, nowNs := s.rng.Int64N(int64(5*time.Second)), now()
	s.queue.funnels.set(modelKey, func(tatNs int64) int64 { return max(tatNs, nowNs) + debitNs })
	s.model.tatNs = max(s.model.tatNs, nowNs) + debitNs
}

func (s *script) sleep(d time.Duration) {
	until := now() + int64(d)
	for len(s.model.waiting) > 0 {
		nextNs := max(s.model.waiting[0].turnNs(), now())
		if nextNs > until {
			break
		}
		time.Sleep(time.Duration(nextNs - now()))
		s.compare(nil)
	}
	time.Sleep(time.Duration(until - now()))
	s.compare(nil)
}

// compare expects the leavers to be woken, then those whose turn has come, in order of arrival.
func (s *script) compare(left []int) {
	synctest.Wait()
	nowNs := now()
	for _, who := range s.model.waiting {
		if who.turnNs() <= nowNs && nowNs > who.latestTurnNs {
			s.t.Errorf("%d has waited for longer than it wanted", who.number)
		}
	}
	s.queue.checkWoken(s.t, append(left, s.model.answer(nowNs)...)...)
	if got, want := s.queue.Waiting(), int64(len(s.model.waiting)); got != want {
		s.t.Errorf("%d wait, want %d", got, want)
	}
}

func (s *script) drain() {
	for len(s.model.waiting) > 0 {
		s.sleep(time.Minute)
	}
	s.queue.checkEmpty(s.t)
	if got := s.queue.funnels.emptyNs(modelKey); max(got, now()) != max(s.model.tatNs, now()) {
		s.t.Errorf("the funnel is empty at %d, want %d", got, s.model.tatNs)
	}
}
